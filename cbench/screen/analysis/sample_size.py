"""Whether there are enough iterations for any effect within them to be told from chance."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from cbench.report.text import counted, some


def least(iterations: int) -> float:
    """The smallest p within iterations: that all have one sign."""
    return 2.0 ** (1 - iterations)


def needed(tests: int, alpha: float) -> int:
    """Iterations for one of so many tests to be told at all, by Holm."""
    return next(n for n in count(2) if tests * least(n) < alpha)


def words(tests: int, alpha: float, blocks: Sequence[tuple[int, str]], told: int = 0) -> list[str]:
    """A sentence where there are too few. `blocks`: iterations of each response that is tested so, and its name.

    `told`: effects that were told already (by the split plot, in other responses): Holm then asks for less.
    """
    fewest = needed(tests - told, alpha) if blocks and tests > told else 0
    few = [f"{name} has {n:,}" for n, name in blocks if n < fewest]
    many = f"{counted(tests, 'effect')} that {'is' if tests == 1 else 'are'} tested"
    rest = f" {told:,} {'is' if told == 1 else 'are'} told, for the next" if told else ""
    said = f"too few iterations to tell any effect within them from chance: of {many}{rest} it takes {fewest:,}"
    return [f"{said}, {some(few)}"] if few else []
