"""Predict how many of a command's interruptions `quiet run` would prevent, from the plan of a profile for this host."""

from __future__ import annotations

import re
from collections.abc import Iterable

from quiet.knobs.registry import BY_NAME
from quiet.machine.facts import Facts
from quiet.noise.budgets import Nanoseconds
from quiet.noise.call_nesting import IRQ
from quiet.noise.command_report import Remaining
from quiet.noise.interruptions import OBSERVER, InterruptionCause, Interruptions
from quiet.noise.kernel_parameters import boot_parameters
from quiet.noise.names import SOFTIRQ_LINE
from quiet.settings.plan import Plan
from quiet.settings.profile import Profile

# These knobs move interruptions to other CPUs, so they help a command on the isolated CPUs even if the plan contains
# none of their changes.
_PLACING = frozenset({"cpuset", "tasks", "irq", "workqueue"})
_KSOFTIRQD = re.compile(r"task ksoftirqd/\d+ ")


class Prediction:
    """The effect of a profile on this host. `applied`: the profile is already applied.

    `absent`: the knobs, except those in _PLACING, for which the plan has skips but no changes, with the reasons; empty
    if the profile is applied.
    `in_place`: the knobs that are already applied; empty if the profile is not applied.
    """

    def __init__(self, facts: Facts, profile: Profile, plan: Plan, applied: bool) -> None:
        self._plan = plan
        wanted = {name for name, choice in profile.knobs.items() if choice != "leave"}
        changed = {change.knob for change in plan.changes}
        idle = {skip.knob: skip.reason for skip in plan.skips if skip.knob not in changed and not applied}
        self.absent = {name: reason for name, reason in idle.items() if name in BY_NAME and name not in _PLACING}
        self._does = wanted if applied else (changed | (wanted & _PLACING)) - (idle.keys() - _PLACING)
        if not applied and "cpuset" in idle and "tasks" in idle:
            self._does -= _PLACING
        self.in_place = frozenset(wanted - changed) if applied else frozenset[str]()
        self._fixed = {skip.target for skip in plan.skips if skip.knob == "irq"}
        given = [boot_parameters(facts, cpu) for cpu in plan.cpus.isolated]
        self._boot = frozenset.intersection(*given) if given else frozenset[str]()

    def of(self, seen: Interruptions) -> Remaining:
        """Split the causes, except the observer, into those that remain and those that the profile prevents."""
        causes = [row for row in seen.causes if not row.cause.startswith(OBSERVER)]
        staying = [row for row in causes if not self.removes(row)]
        if any(row.cause.startswith(SOFTIRQ_LINE) for row in staying):  # whichever softirq stays, ksoftirqd may run it
            staying += [row for row in causes if _KSOFTIRQD.match(row.cause) and row not in staying]
        known = [row.total_ns for row in staying if row.total_ns is not None]
        count = _count(staying)
        return Remaining(
            profile=self._plan.profile,
            count=count,
            gone=_count(causes) - count,
            total_ns=Nanoseconds(sum(known)) if known or not staying else None,
            causes=tuple(row.cause for row in sorted(staying, key=lambda row: (-row.count, row.cause))),
        )

    def removes(self, row: InterruptionCause) -> bool:
        """Whether the profile keeps a cause from interrupting the isolated CPUs."""
        if row.kind == IRQ and (number := re.match(r"IRQ (\d+)", row.cause)) and f"irq:{number[1]}" in self._fixed:
            return False
        if row.boot:
            return row.boot.partition("=")[0] in self._boot
        return row.knob in self._does


def _count(rows: Iterable[InterruptionCause]) -> int:
    return sum(row.count for row in rows)
