"""Store a screening: a series for each start or resume, a trial for each application.

A trial's value is the response multiplied by its scale. The trial's counts record the left-out knobs and the suspected
knobs (one bit each, in the order of the knobs), the phase, and the duration. The plan is stored before the first
application.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from cbench.knobs.design import CONFLICTS, SEARCH, VERIFY, LeftOut, ScreenedKnob
from cbench.knobs.host import KnobPlan
from cbench.knobs.options import KnobOptions
from cbench.machine.describe import describe, to_store
from cbench.model import Trial
from cbench.store.database import reading
from cbench.store.store import Store
from quiet import UsageError, parse_cpus

PHASES = (SEARCH, VERIFY, CONFLICTS)
KIND = "knob_screening"
LEFT_OUT, PHASE, TOOK_MS, SUSPECTS = "left_out", "phase", "took_ms", "suspects"


@dataclass(frozen=True, slots=True)
class MeasuredApplication:
    """A completed application: the response in its unit (`value`), and the duration including apply and restore.

    `suspects`: the screened knobs that `quiet noise` named as remedies.
    """

    left_out: LeftOut
    phase: str
    value: float
    seconds: float
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredScreening:
    """A stored screening with its applications so far. `identity`: constant across resumes."""

    identity: str
    options: KnobOptions
    plan: KnobPlan
    applications: tuple[MeasuredApplication, ...] = ()

    @classmethod
    def new(cls, options: KnobOptions, plan: KnobPlan) -> StoredScreening:
        """A new screening, before its first application."""
        return cls(f"{time.time_ns():x}-{os.getpid():x}", options, plan)

    def trial(self, made: MeasuredApplication) -> Trial:
        """The application as a trial for the store."""
        counts = {LEFT_OUT: self._bits(made.left_out), PHASE: PHASES.index(made.phase)}
        counts |= {TOOK_MS: round(made.seconds * 1e3), SUSPECTS: self._bits(made.suspects)}
        return Trial(round(made.value * self.options.of.scale), 0, counts=counts)

    def _bits(self, names: Collection[str]) -> int:
        return sum(1 << at for at, knob in enumerate(self.plan.screened) if knob.name in names)

    def _names(self, bits: int) -> tuple[str, ...]:
        if not 0 <= bits < 1 << len(self.plan.screened):
            raise ValueError("an application names a knob that does not exist")
        return tuple(knob.name for at, knob in enumerate(self.plan.screened) if bits >> at & 1)

    def application(self, trial: Trial) -> MeasuredApplication:
        """Read a stored application. Raises LookupError or ValueError for content that this program did not write."""
        return MeasuredApplication(
            frozenset(self._names(trial.counts[LEFT_OUT])),
            PHASES[trial.counts[PHASE]],
            trial.value / self.options.of.scale,
            trial.counts[TOOK_MS] / 1e3,
            self._names(trial.counts[SUSPECTS]),
        )


def read(path: Path) -> StoredScreening:
    """The last screening in this file. Raises UsageError if there is none, QuietError if the file is damaged."""
    with Store.open(path) as store:
        every = store.series()
    with reading(path):
        mine = [each.facts[KIND] | {"trials": each.trials} for each in every if KIND in each.facts]
        if not mine:
            raise UsageError(f"{path}: contains no screening of knobs; start one with: cbench screen knobs -o FILE")
        last = mine[-1]
        given: Any = {name: tuple(each) if isinstance(each, list) else each for name, each in last["options"].items()}
        options = KnobOptions(**given)
        plan = KnobPlan(
            **{
                **last["plan"],
                "screened": tuple(ScreenedKnob(**each) for each in last["plan"]["screened"]),
                "fixed": tuple(last["plan"]["fixed"]),
                "boot": tuple(last["plan"]["boot"]),
                "services": {key: tuple(names) for key, names in last["plan"]["services"].items()},
            }
        )
        parse_cpus(plan.isolated)
        empty = StoredScreening(str(last["identity"]), options, plan)
        trials = [kept.trial for each in mine if each["identity"] == empty.identity for kept in each["trials"]]
        return replace(empty, applications=tuple(empty.application(trial) for trial in trials))


class ScreeningKeeper:
    """Stores each application when it has ended."""

    def __init__(self, store: Store, screening: StoredScreening) -> None:
        cpus = parse_cpus(screening.plan.isolated)
        of = screening.options.of
        content = {
            "identity": screening.identity,
            "options": asdict(screening.options),
            "plan": asdict(screening.plan),
        }
        facts = {
            "workload": f"screen knobs {of.name}",
            "params": {},
            "cpu": min(cpus),
            "process": 0,
            "counter": {"name": of.name, "unit": f"{of.unit}/{of.scale}"},
            KIND: content,
        }
        self._store, self._screening = store, screening
        self._series = store.begin(facts)

    def add(self, made: MeasuredApplication) -> None:
        """Store an application; it is on disk when this method returns. Raises QuietError if it cannot be written."""
        self._store.add(self._series, [self._screening.trial(made)])


@contextmanager
def kept(path: Path, screening: StoredScreening, command: Sequence[str] | None = None) -> Iterator[ScreeningKeeper]:
    """A context with a keeper that stores the applications in this file."""
    host = to_store(describe(parse_cpus(screening.plan.isolated), frozenset()))
    with Store.create(path, host=host, command=command or sys.argv) as store:
        yield ScreeningKeeper(store, screening)
