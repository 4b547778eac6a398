"""Which trials count as clean.

CAUSES   no known interruption: what a counter of cycles and the kernel's own account can tell.
FLOOR    the value itself: at most two of the counter's steps above the floor. For virtual machines, where the host
         interrupts and no counter of the guest sees it: a trial without a known cause is often not clean there, and
         one with an interrupt beside the timed region often is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cbench.model import Trial
from cbench.stats.summary import floor

CAUSES, FLOOR = "causes", "floor"
STEPS = 2

WORDS = {CAUSES: "without a known interruption", FLOOR: f"at most {STEPS} steps of the counter above the floor"}


def rule_for(unit: str, virtual: bool) -> str:
    """The rule for a counter in this unit: FLOOR for a clock's ticks in a virtual machine, else CAUSES."""
    return FLOOR if virtual and unit.endswith("ticks") else CAUSES


def clean(trials: Sequence[Trial], quantum: int, rule: str) -> list[Trial]:
    """The clean ones, in order."""
    if rule == CAUSES:
        return [trial for trial in trials if not trial.polluted]
    lowest = floor([trial.value for trial in trials if trial.valid])
    if lowest is None:
        return []
    return [trial for trial in trials if trial.valid and abs(trial.value - lowest) <= STEPS * quantum]


@dataclass(frozen=True, slots=True)
class Clean:
    """The clean trials of a series: how many, their share, their lowest and highest value (None without any)."""

    count: int
    share: float
    low: int | None
    high: int | None

    @property
    def range(self) -> int | None:
        return None if self.low is None or self.high is None else self.high - self.low


def summarise_clean(trials: Sequence[Trial], quantum: int, rule: str) -> Clean:
    """Of no trials: none, a share of 0."""
    values = [trial.value for trial in clean(trials, quantum, rule)]
    share = len(values) / len(trials) if trials else 0.0
    return Clean(len(values), share, min(values, default=None), max(values, default=None))
