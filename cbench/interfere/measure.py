"""A workload with and without load on other CPUs, as in the thesis's figures 4-4, 4-5 and 5-2.

Source: D. Kozak, "Chasing Zero Variability in Software Performance", MIT.
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


@dataclass(frozen=True, slots=True)
class Condition:
    """No load, or one load at one place; `reason` says why it could not be measured."""

    place: Place | None = None
    spec: load_generator.Spec | None = None
    reason: str = ""

    @property
    def name(self) -> str:
        return UNLOADED if self.place is None or self.spec is None else f"{self.spec.workload} on {self.place.title}"


@dataclass(slots=True)
class ConditionResult:
    """A condition and its visits: one Result for each workload and visit, with what the load did meanwhile."""

    condition: Condition
    visits: list[list[Result]] = field(default_factory=list)
    figures: list[load_generator.Figures] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class InterferePlan:
    """What is to be measured. `schedule` holds positions in `conditions`, of which 0 is the unloaded one."""

    chosen: Sequence[Workload]
    params: Sequence[Params]
    cpu: int
    isolated: frozenset[int]
    options: MeasureOptions
    conditions: tuple[Condition, ...]
    schedule: tuple[int, ...]


def conditions(places: Sequence[Place], specs: Sequence[load_generator.Spec]) -> tuple[Condition, ...]:
    """The unloaded one first, then every load at every place that this host has."""
    loaded = [Condition(p, replace(spec, cpu=p.cpu)) for p in places if p.cpu is not None for spec in specs]
    return (Condition(), *loaded)


def schedule(count: int, rounds: int, seed: int) -> tuple[int, ...]:
    """Every condition once a round in a random order, so that drift hits all alike; no load (0) first and last."""
    dice = random.Random(seed)
    order = [0]
    for _ in range(rounds):
        each = list(range(count))
        dice.shuffle(each)
        order += each
    return (*order, 0)


def per_visit(trials: int, rounds: int) -> int:
    """Trials of a visit, so that a condition gets at least `trials` in all its rounds."""
    return -(-trials // rounds)


def run(plan: InterferePlan, show: Show) -> list[ConditionResult]:
    """All visits in the plan's order. A place that may not be used is kept with its reason."""
    found = [ConditionResult(condition) for condition in plan.conditions]
    whole = len(plan.schedule) * len(plan.chosen) * plan.options.trials
    for number, position in enumerate(plan.schedule):
        measured = found[position]
        if measured.condition.reason:
            continue
        title = f"{measured.condition.name}: visit {number + 1} of {len(plan.schedule)}"
        before = number * len(plan.chosen) * plan.options.trials

        def progress(text: str, done: int, _wanted: int, title: str = title, before: int = before) -> None:
            show(f"{title}: {text}", before + done, whole)

        show(f"{title}: starting", before, whole)
        try:
            _visit(plan, measured, progress)
        except Refused as error:
            if measured.condition.spec is None or measured.visits:
                raise
            measured.condition = replace(measured.condition, reason=str(error))
    return found


def _visit(plan: InterferePlan, measured: ConditionResult, show: Show) -> None:
    spec = measured.condition.spec
    loaded = (
        contextlib.nullcontext(load_generator.Figures()) if spec is None else load_generator.running(spec, plan.cpu)
    )
    with runner.away_from({spec.cpu} if spec else set(), 2), loaded as figures:  # the measured one and another
        results = measurement.measure(
            plan.chosen, plan.params, [plan.cpu], isolated=plan.isolated, options=plan.options, show=show
        )
    measured.visits.append(results)
    measured.figures.append(figures)
