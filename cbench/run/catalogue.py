"""List the workloads and this host's counters for `cbench list` and `cbench explain`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from cbench.machine import counters
from cbench.model import Workload
from cbench.workloads import user_code
from cbench.workloads.registry import USER_PARAMETERS, WORKLOADS
from quiet import UsageError, did_you_mean


@dataclass(frozen=True, slots=True)
class ListedParameter:
    """A workload's parameter: its value without and with --quick."""

    default: int
    quick: int
    meaning: str


@dataclass(frozen=True, slots=True)
class ListedWorkload:
    """A workload, or a user's function, as `cbench list` and `cbench explain` report it."""

    name: str
    stresses: str
    cost: str
    params: Mapping[str, ListedParameter]


@dataclass(frozen=True, slots=True)
class ListedCounter:
    """A counter, with its availability on the current CPU."""

    name: str
    unit: str
    available: bool
    why: str
    method: str


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The JSON object of `cbench list --json`."""

    workloads: tuple[ListedWorkload, ...]
    counters: tuple[ListedCounter, ...]


def catalogue() -> Catalogue:
    """All workloads and all counters."""
    own = Workload(
        "FILE.c:FUNCTION",
        "",
        f"your own: {user_code.PROTOTYPE}; it is also called once before each trial, and that value is discarded",
        USER_PARAMETERS,
    )
    found = counters.survey(min(os.sched_getaffinity(0)))
    return Catalogue(
        tuple(_workload(workload) for workload in (*WORKLOADS, own)),
        tuple(ListedCounter(c.name, c.unit, c.available, c.why, c.method) for c in found),
    )


def explained(name: str) -> ListedWorkload | ListedCounter:
    """The workload or counter with this name. Raises UsageError, with similar names, if there is none."""
    content = catalogue()
    by_name: dict[str, ListedWorkload | ListedCounter] = {each.name: each for each in content.workloads}
    by_name |= {each.name: each for each in content.counters}
    if name not in by_name:
        raise UsageError(f"unknown workload or counter {name!r}; see `cbench list`{did_you_mean(name, by_name)}")
    return by_name[name]


def _workload(workload: Workload) -> ListedWorkload:
    params = {p.name: ListedParameter(p.default, p.quick, p.meaning) for p in workload.parameters}
    return ListedWorkload(workload.name, workload.stresses, workload.cost, params)
