"""Measure a workload with and without load on other CPUs, as in figures 4-4, 4-5 and 5-2 of the thesis of D. Kozak,
"Chasing Zero Variability in Software Performance", MIT.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from cbench.interfere import load_generator
from cbench.machine.topology import Place
from cbench.measure import measurement, runner
from cbench.measure.options import MeasureOptions
from cbench.model import Params, Result, Workload
from quiet import Refused

Show = Callable[[str, int, int], None]
UNLOADED = "no load"


@dataclass(slots=True)
class Condition:
    """No load, or one load at one place. `reason`: the reason why the condition could not be measured, ""
    if it could.

    `visits`: the measurements, one Result for each workload and visit; `figures`: the load's own work during each
    visit.
    """

    place: Place | None = None
    spec: load_generator.Spec | None = None
    reason: str = ""
    visits: list[list[Result]] = field(default_factory=list)
    figures: list[load_generator.Figures] = field(default_factory=list)

    @property
    def name(self) -> str:
        return UNLOADED if self.place is None or self.spec is None else f"{self.spec.workload} on {self.place.title}"


@dataclass(frozen=True, slots=True)
class InterferePlan:
    """The conditions to measure. `schedule` holds indices into `conditions`; index 0 is the unloaded condition."""

    chosen: Sequence[Workload]
    params: Sequence[Params]
    cpu: int
    isolated: frozenset[int]
    options: MeasureOptions
    conditions: tuple[Condition, ...]
    schedule: tuple[int, ...]


def conditions(places: Sequence[Place], specs: Sequence[load_generator.Spec]) -> tuple[Condition, ...]:
    """The unloaded condition, then every load at every place that this host has."""
    loaded = [Condition(p, replace(spec, cpu=p.cpu)) for p in places if p.cpu is not None for spec in specs]
    return (Condition(), *loaded)


def schedule(count: int, rounds: int, seed: int) -> tuple[int, ...]:
    """The order of visits: each round has every condition once in random order, so that drift affects all conditions
    equally; the first and the last visit are unloaded (0).
    """
    dice = random.Random(seed)
    order = [0]
    for _ in range(rounds):
        each = list(range(count))
        dice.shuffle(each)
        order += each
    return (*order, 0)


def run(plan: InterferePlan, show: Show) -> None:
    """Make all visits in the plan's order and store them in its conditions, with the reason for each unusable place."""
    whole = len(plan.schedule) * len(plan.chosen) * plan.options.trials
    for number, position in enumerate(plan.schedule):
        condition = plan.conditions[position]
        if condition.reason:
            continue
        title = f"{condition.name}: visit {number + 1} of {len(plan.schedule)}"
        before = number * len(plan.chosen) * plan.options.trials

        def progress(text: str, done: int, _wanted: int, title: str = title, before: int = before) -> None:
            show(f"{title}: {text}", before + done, whole)

        show(f"{title}: starting", before, whole)
        try:
            _visit(plan, condition, progress)
        except Refused as error:
            if condition.spec is None or condition.visits:
                raise
            condition.reason = str(error)


def _visit(plan: InterferePlan, condition: Condition, show: Show) -> None:
    spec, figures = condition.spec, load_generator.Figures()
    loaded = contextlib.nullcontext(figures) if spec is None else load_generator.running(spec, plan.cpu)
    with (
        runner.away_from({spec.cpu} if spec else set(), 2),  # 2: the measured CPU and one for this process
        loaded as figures,
    ):
        results = measurement.measure(
            plan.chosen, plan.params, [plan.cpu], isolated=plan.isolated, options=plan.options, show=show
        )
    condition.visits.append(results)
    condition.figures.append(figures)
