"""Implement `cbench order plan`: list a study's tests and runs before anything is measured."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import comb
from pathlib import Path

from cbench.order.claims import FIRST
from cbench.report.text import counted
from cbench.study import config, orders
from cbench.study.lifecycle import expected_s, planned
from cbench.study.model import Study
from cbench.study.table import span
from quiet import one_line

MOST_TESTS, MOST_RUNS, MOST_NAMES = 20, 4, 8


@dataclass(frozen=True, slots=True)
class OrderPlanTest:
    """A test in the plan: its shell command or its workload; both are "" for a test of a suite."""

    name: str
    command: str
    workload: str


@dataclass(frozen=True, slots=True)
class OrderPlanRun:
    """A run in the plan. `kind`: "fixed", "random", "williams" or "isolated"; `tests`: names in their order."""

    kind: str
    tests: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """The JSON object of `cbench order plan --json`. `host`: the name that determines the random orders, together with
    the seed; `profile`: the profile of `quiet` under which the study runs, "" if none; `left_s`: the expected duration
    in seconds, None if unknown; `words`: remarks, one sentence each.
    """

    name: str
    design: str
    host: str
    tests: tuple[OrderPlanTest, ...]
    runs: tuple[OrderPlanRun, ...]
    trials: int
    reset: str
    profile: str
    left_s: float | None
    words: tuple[str, ...]


def plan(file: str, host: str | None = None) -> OrderPlan:
    """Plan a study: list the tests of its suite, if it has one, and draw its orders. `host`: as for StartStudy. The
    duration is known if the store beside the file has trials of the same tests. Raises QuietError if the study cannot
    be run.
    """
    host = os.uname().nodename if host is None else host
    study, runs = planned(config.load(Path(file)), file, host)
    names = tuple(test.name for test in study.tests)
    data = Path(file).with_suffix(".db")
    words = _too_few(study, runs)
    if data.exists() and data.samefile(file):
        words.append(f"{data}: is the study's file; `cbench order run` needs another name for its store (-o)")
    elif data.exists():
        words.append(
            f"{data} exists: `cbench order resume {data}` continues it; to start over, remove it or name another file "
            "(-o)"
        )
    return OrderPlan(
        name=study.name,
        design=study.design,
        host=host,
        tests=tuple(OrderPlanTest(test.name, test.command, test.workload) for test in study.tests),
        runs=tuple(OrderPlanRun(run.kind, tuple(names[test] for test in run.order)) for run in runs),
        trials=sum(len(run.order) for run in runs),
        reset=study.reset.kind,
        profile=study.profile,
        left_s=expected_s(data, names, sum(len(run.order) for run in runs)),
        words=tuple(words),
    )


def _too_few(study: Study, runs: Sequence[orders.PlannedRun]) -> list[str]:
    """A sentence if no difference between the two kinds of runs can be significant: even if all values of one kind
    exceed those of the other, p of the permutation test is 2 / comb(2n, n), multiplied by the number of series.
    """
    kinds = sorted({run.kind for run in runs})
    if len(study.tests) < 2:
        return ["a single test has no order: add tests"]
    if len(kinds) < 2:
        return []
    results = Counter((run.kind, test) for run in runs for test in run.order)
    n = max(min(results[kind, test] for kind in kinds) for test in range(len(study.tests)))
    level = FIRST * study.alpha / sum(len(test.metrics) or 1 for test in study.tests)
    needed = next(each for each in count(2) if 2 / comb(2 * each, each) < level)
    if n >= needed:
        return []
    return [
        f"too few runs: on one host, {counted(n, 'result')} of a test in {kinds[0]} and in {kinds[1]} runs cannot show "
        f"a difference, however large; raise study.repetitions: at least {needed} of each are needed"
    ]


def lines(plan: OrderPlan) -> list[str]:
    """The plan as text."""
    kinds = Counter(run.kind for run in plan.runs)
    each = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
    shown = [
        f"{plan.name}: {counted(len(plan.tests), 'test')}, {counted(len(plan.runs), 'run')} ({each}): "
        f"{counted(plan.trials, 'trial')}"
    ]
    shown += [f"  {test.name}{_what(test)}" for test in plan.tests[:MOST_TESTS]]
    if (more := len(plan.tests) - MOST_TESTS) > 0:
        shown.append(f"  and {more:,} more")
    for number, run in enumerate(plan.runs[:MOST_RUNS], 1):
        names = ", ".join(run.tests[:MOST_NAMES]) + (", ..." if len(run.tests) > MOST_NAMES else "")
        shown.append(f"run {number}, {run.kind}: {names}")
    if (more := len(plan.runs) - MOST_RUNS) > 0:
        shown.append(f"and {counted(more, 'more run')}")
    if plan.reset != "none":
        shown.append(f"reset before each run: {plan.reset}")
    if plan.profile:
        shown.append(f"the study runs under `quiet run --profile {plan.profile}`")
    shown += plan.words
    if plan.left_s is not None:
        shown.append(f"duration: about {span(plan.left_s)}, estimated from the trials of an earlier run")
    return shown


def _what(test: OrderPlanTest) -> str:
    if test.workload:
        return f": workload {test.workload}"
    return f": {one_line(test.command)}" if test.command else ""
