"""Combine the stores of one screening experiment that ran on several hosts; each host keeps separate batches.

A block is an iteration of a batch, so every test within blocks compares values of one host only, and in the analysis of
batches, the random effect of batches includes the hosts. First, each host's values of a response are scaled to a
common median if all values are positive, otherwise shifted to it, as in `cbench order analyze`: J. L. Hodges, E. L.
Lehmann, Ann. Math. Statist. 33 (1962) 482-497.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np

from cbench.machine.passport import Passport, unlike
from cbench.report.text import some
from cbench.results import JsonValue
from cbench.screen.data import read_store
from cbench.screen.data.data import Data, ResponseSeries, Values
from cbench.store.kind import is_store
from cbench.study.records import host_names
from cbench.study.store import StudyStore
from quiet import UsageError


def read(paths: Sequence[Path]) -> Data:
    """Read and combine the stores of several hosts. Raises UsageError if the files are not all stores of one screen, or
    if a store is given twice.
    """
    headers = []
    for path in paths:
        if not path.exists() or not is_store(path):
            raise UsageError(f"{path}: not a store; several files must be the stores of one screen on several hosts")
        with StudyStore.open(path, kind="screen") as store:
            headers.append(store.header())
    for number, (path, header) in enumerate(zip(paths, headers, strict=True)):
        for other, before in zip(paths[:number], headers, strict=False):
            if header.made_ns == before.made_ns and header.host == before.host:
                raise UsageError(f"{path}: is the same experiment as {other}; give the store of each host once")
    parts = [read_store.read(path) for path in paths]
    for path, part in zip(paths, parts, strict=True):
        if (part.factors, part.treatments) != (parts[0].factors, parts[0].treatments):
            raise UsageError(f"{path}: has different factors or treatments than {paths[0]}; give stores of one screen")
    if not any(each.value.size for part in parts for each in part.series):
        raise UsageError(f"{paths[0]}: contains no values; neither do the other stores")
    names = host_names(paths, headers)
    passports = {
        name: passport
        for name, header in zip(names, headers, strict=True)
        if (passport := Passport.parse(cast("Mapping[str, JsonValue]", header.host))) is not None
    }
    warnings = [f"{name}: {said}" for name, part in zip(names, parts, strict=True) for said in part.warnings]
    differing = unlike(passports)
    return replace(
        combined(parts, names),
        passports=differing,
        warnings=(*warnings, *(f"the hosts differ: {each}" for each in differing)),
        about=(*parts[0].about, ("hosts", f"{some(names)} ({len(names):,}), each with its own batches")),
    )


def combined(parts: Sequence[Data], names: Sequence[str]) -> Data:
    """Combine the data of several hosts, with the same factors and treatments, into the data of one screen."""
    several = len(parts) > 1
    batches = tuple(
        f"{name} {batch}".strip() for name, part in zip(names, parts, strict=True) for batch in part.batches
    )
    begins = np.cumsum([0, *(len(part.batches) for part in parts)]).tolist()
    every: dict[str, list[tuple[int, int, ResponseSeries]]] = {}
    for host, (begin, part) in enumerate(zip(begins, parts, strict=False)):
        for series in part.series:
            every.setdefault(series.name, []).append((host, begin, series))
    blocks = tuple(host for host, part in enumerate(parts) for _ in part.batches)
    hard = any(factor.hard for factor in parts[0].factors)
    return replace(
        parts[0],
        batches=batches,
        series=tuple(_joined(shares, len(parts)) for shares in every.values()),
        questionable={number: why for part in parts[::-1] for number, why in part.questionable.items()},
        plot_blocks=blocks if hard and several else parts[0].plot_blocks,
        hosts=tuple(names) if several else (),
        iterations_left=sum(part.iterations_left for part in parts),
        host_of_batch=blocks if several else (),
    )


def _joined(shares: Sequence[tuple[int, int, ResponseSeries]], hosts: int) -> ResponseSeries:
    """The series of all hosts combined into one. Each share has the host's number, the number of its first batch, and
    its series.
    """
    levels = [float(np.median(known)) if (known := _known(each.value)).size else np.nan for *_, each in shares]
    centre = float(np.nanmedian(levels)) if not np.isnan(levels).all() else np.nan
    positive = all(_known(each.value).min(initial=np.inf) > 0 for *_, each in shares)
    values = [
        each.value * (centre / level) if positive else each.value - level + centre
        for (*_, each), level in zip(shares, levels, strict=True)
    ]
    begins = np.cumsum([0, *(each.sequence.max(initial=-1) + 1 for *_, each in shares)])
    of_host = dict(zip((host for host, *_ in shares), levels, strict=True))
    return replace(
        shares[0][2],
        treatment=np.concatenate([each.treatment for *_, each in shares]),
        iteration=np.concatenate([each.iteration for *_, each in shares]),
        batch=np.concatenate([each.batch + begin for _, begin, each in shares]).astype(np.int32),
        sequence=np.concatenate(
            [each.sequence + begin for begin, (*_, each) in zip(begins, shares, strict=False)]
        ).astype(np.int32),
        value=np.concatenate(values),
        unobtainable=frozenset.union(*(each.unobtainable for *_, each in shares)),
        levels=tuple(of_host.get(host, np.nan) for host in range(hosts)) if hosts > 1 else (),
    )


def _known(value: Values) -> Values:
    return np.asarray(value[~np.isnan(value)])
