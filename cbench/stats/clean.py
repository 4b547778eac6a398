"""Select the trials that count as clean.

CAUSES   no known interruption: what a counter of cycles and the kernel's own account can tell.
FLOOR    the value itself: at most two of the counter's steps above the floor, or above a value one step below it. For
         virtual machines, where the host interrupts and no counter of the guest sees it: a trial without a known cause
         is often not clean there, and one with an interrupt beside the timed region often is.
CHAINS   what the chains of additions around it tell, for cycles by calibration: an interrupt within the trial is not
         among that, and the robust center takes care of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from cbench.model import CALIBRATED_UNIT, Trial
from cbench.stats.chains import kept
from cbench.stats.summary import by_chance, floor

CAUSES, FLOOR, CHAINS = "causes", "floor", "chains"
STEPS = 2

WORDS = {
    CAUSES: "without a known interruption",
    FLOOR: f"at most {STEPS} steps of the counter above the floor",
    CHAINS: "whose chains agree, on a core that was not shared",
}


def rule_for(unit: str, virtual: bool) -> str:
    """The rule for a counter in this unit: FLOOR for a clock's ticks in a virtual machine, else CAUSES."""
    if unit == CALIBRATED_UNIT:
        return CHAINS
    return FLOOR if virtual and unit.endswith("ticks") else CAUSES


def clean(trials: Sequence[Trial], quantum: int, rule: str) -> list[Trial]:
    """The clean trials, in order."""
    if rule == CHAINS:
        return [trial for trial in trials if kept(trial)]
    if rule == CAUSES:
        return [trial for trial in trials if trial.valid and not trial.polluted]
    valid = [trial for trial in trials if trial.valid]
    values = [trial.value for trial in valid]
    lowest = floor(values)
    if lowest is None or by_chance(values, lowest, quantum):
        return []
    base = min(trial.value for trial in valid if trial.value >= lowest - quantum)
    return [trial for trial in valid if 0 <= trial.value - base <= STEPS * quantum]
