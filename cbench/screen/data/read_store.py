"""Read the store of a screening experiment as the input of an analysis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from math import prod
from pathlib import Path

import numpy as np

from cbench.report.text import some
from cbench.screen.config.model import Abridgment, Screen, Treatment, Where
from cbench.screen.data import load_store
from cbench.screen.data.data import Data, Filter, ResponseSeries
from cbench.screen.data.load_store import BatchFacts, StoredScreen
from cbench.screen.design.factorial import Factor
from cbench.store.database import reads_store


@reads_store
def read(path: Path) -> Data:
    """The trials that have ended; a failed trial has no value of any response. Raises UsageError if the store has no
    experiment, QuietError if it is damaged.
    """
    stored = load_store.read(path)
    screen = stored.screen
    planned = prod(len(factor.levels) for factor in screen.factors)
    distinct = _distinct(stored.treatments)
    first = {number: treatment for treatment, number in reversed([*zip(stored.treatments, distinct, strict=True)])}
    treatments = [first[number] for number in range(len(first))]
    return Data(
        screen.name or path.stem,
        tuple(Factor(factor.name, factor.names, factor.hard) for factor in screen.factors),
        tuple(treatment.numbers for treatment in treatments),
        tuple(_series(stored, distinct)),
        tuple(_batch(number, levels) for number, levels in enumerate(stored.batches)) or ("",),
        {number: each.questionable for number, each in enumerate(treatments) if each.questionable},
        tuple(_filter(each, treatments) for each in screen.abridgments),
        screen.alpha,
        screen.confidence,
        screen.seed,
        tuple(_about(stored)),
        (*stored.warnings, *_failures(stored)),
        planned - len(stored.treatments) if screen.design == "full" else 0,
        iterations_left=stored.iterations_left,
    )


def _distinct(treatments: Sequence[Treatment]) -> list[int]:
    """A number for each treatment. Rows of a design that repeat a treatment, as in Plackett-Burman designs, have equal
    numbers.
    """
    numbers: dict[tuple[int, ...], int] = {}
    return [numbers.setdefault(each.numbers, len(numbers)) for each in treatments]


def _batch(number: int, levels: Mapping[str, str]) -> str:
    named = " ".join(f"{name}={level}" for name, level in levels.items())
    return f"{number}{': ' + named if named else ''}"


def _filter(each: Abridgment, treatments: Sequence[Treatment]) -> Filter:
    keep = np.array([each.keeps(treatment.levels) for treatment in treatments], dtype=bool)
    parts = [("only", each.only), ("minus", each.minus)]
    words = [f"{word} {', '.join(map(_words, wheres))}" for word, wheres in parts if wheres]
    return Filter(each.name, "; ".join(words), keep)


def _words(where: Where) -> str:
    """A filter as text, such as `fp=0 prf=1|2`."""
    return " ".join(f"{factor}={'|'.join(levels)}" for factor, levels in where.items())


def _series(stored: StoredScreen, distinct: Sequence[int]) -> list[ResponseSeries]:
    screen, several = stored.screen, len(stored.screen.workloads) > 1
    series = []
    for workload in screen.workloads:
        for response in screen.responses:
            if response.workloads and workload.name not in response.workloads:
                continue
            missing = frozenset(
                distinct[each.number] for each in stored.treatments if response.name in each.unobtainable
            )
            rows = [
                (at, trial)
                for at, trial in enumerate(stored.trials)
                if trial.workload == workload.name and distinct[trial.treatment] not in missing
            ]
            if not any(response.name in trial.values for _, trial in rows if trial.failure is None):
                continue
            columns = [(distinct[trial.treatment], trial.iteration, trial.batch, at) for at, trial in rows]
            treatment, iteration, batch, sequence = np.array(columns, dtype=np.int32).T.copy()
            series.append(
                ResponseSeries(
                    name=f"{workload.name}:{response.name}" if several else response.name,
                    workload=workload.name if several else "",
                    response=response.name,
                    unit=stored.units[response.name],
                    better=response.metric.better,
                    treatment=treatment,
                    iteration=iteration,
                    batch=batch,
                    sequence=sequence,
                    value=np.array([trial.values.get(response.name, np.nan) for _, trial in rows], dtype=np.float64),
                    unobtainable=missing,
                )
            )
    return series


def _failures(stored: StoredScreen) -> list[str]:
    failures = [(trial.test, trial.failure) for trial in stored.trials if trial.failure is not None]
    if not failures:
        return []
    counts = Counter(test for test, _ in failures)
    named = [f"{stored.tests[test].name} ({count:,})" for test, count in counts.items()]
    return [f"failed trials: {some(named)}; first failure: {failures[0][1]}"]


def _about(stored: StoredScreen) -> list[tuple[str, str]]:
    header, screen = stored.header, stored.screen
    begin = datetime.fromtimestamp(header.made_ns // 10**9, UTC)
    took = "not finished"
    if header.ended_ns is not None:
        minutes = (header.ended_ns - header.made_ns) / 60e9
        took = f"took {minutes / 60:.1f} h" if minutes > 120 else f"took {minutes:.1f} min"
    many = len(stored.batches)
    batches = "1 batch" if many == 1 else f"{many:,} batches"
    rows = [
        ("design", f"{screen.design}, {screen.iterations:,} iterations in each of {batches}"),
        ("seed", f"{header.seed}"),
        ("time", f"begun {begin:%Y-%m-%d %H:%M} UTC, {took}"),
        ("host", ", ".join(header.machine)),
        ("reset before each batch", screen.reset.kind),
        ("quiet", f"profile {screen.profile}" if screen.profile else "no profile was applied"),
    ]
    boots = {boot for each in stored.facts for boot in each.boot_ids}
    rows += [("boots", f"the batches span {len(boots):,} boots of the host")] if len(boots) > 1 else []
    return [*rows, *_controlled(screen, stored.facts)]


def _controlled(screen: Screen, facts: Sequence[BatchFacts]) -> list[tuple[str, str]]:
    rows = []
    for each in screen.controlled:
        seen = dict.fromkeys(fact.controlled.get(each.name, "") for fact in facts)
        known = [one for one in seen if one]
        note = " (unknown in some)" if 0 < len(known) < len(seen) else ""
        note = " (changed between batches)" if len(known) > 1 else note
        rows.append((f"controlled: {each.name}", (each.value or some(known) or "unknown") + note))
    return rows
