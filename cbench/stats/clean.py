"""Select the trials that count as clean.

CAUSES   No known interruption, according to a counter of cycles and the kernel's own counts.
FLOOR    The value is at most two of the counter's steps above the floor, or above a value one step below it. This rule
         is for virtual machines, in which no counter of the guest detects interruptions by the host. In a guest, a
         trial without a known cause is often not clean, and a trial with an interrupt outside the timed region is
         often clean.
CHAINS   The chains of additions around the trial agree, and no other task ran within it. This rule is for cycles by
         calibration. The chains do not detect an interrupt within the trial, which the robust center tolerates.
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
    CHAINS: "whose chains agree, on a core that was not shared, and in which no other task ran",
}


def rule_for(unit: str, virtual: bool) -> str:
    """The rule for a counter in this unit: CHAINS for calibrated cycles, FLOOR for a clock's ticks in a virtual
    machine, otherwise CAUSES.
    """
    if unit == CALIBRATED_UNIT:
        return CHAINS
    return FLOOR if virtual and unit.endswith("ticks") else CAUSES


def clean(trials: Sequence[Trial], quantum: int, rule: str) -> list[Trial]:
    """The clean trials, in order. `quantum`: the counter's step, used by FLOOR. FLOOR selects no trial if the floor can
    be due to chance.
    """
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
