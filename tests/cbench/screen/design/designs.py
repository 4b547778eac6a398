"""The design of NIST TN 1855: os x fp x prf, with its questionable treatment and its three abridgments."""

from __future__ import annotations

from cbench.screen.design.factorial import Factor, full_factorial

OS, FP, PRF = 0, 1, 2
FACTORS = (Factor("os", ("0", "1"), hard=True), Factor("fp", ("0", "1")), Factor("prf", ("0", "1", "2")))
COMPLETE = full_factorial(FACTORS)
WITHOUT_QUESTIONABLE = tuple(each for each in COMPLETE if each[1:] != (0, 2))
WITHOUT_DWARF = tuple(each for each in COMPLETE if each[PRF] != 2)
MATCHED_ONLY = tuple(each for each in COMPLETE if each[1:] in ((0, 1), (1, 2)))


def factors(names: str, levels: int = 2) -> list[Factor]:
    """One for each letter."""
    return [Factor(name, tuple(str(level) for level in range(levels))) for name in names]
