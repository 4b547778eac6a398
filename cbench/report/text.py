"""Format words and numbers in the common style of tables, verdicts and pages."""

from __future__ import annotations

from collections.abc import Sequence

MOST = 5
"""The maximum number of items that a sentence lists."""


def counted(number: int, noun: str) -> str:
    """The number with its noun: `1 test`, `2 tests`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def about(count: int) -> int:
    """The number rounded up to two significant digits: 309,692 becomes 310,000."""
    step: int = 10 ** max(0, len(str(count)) - 2)
    return -(-count // step) * step


def some(items: Sequence[str], total: int | None = None, left_off: int = 0) -> str:
    """The first MOST items as text, and the number of the others. `total`: the number of all items, None if `items` has
    them all; `left_off`: the number of items that --json omits too.
    """
    total = len(items) if total is None else total
    shown = ", ".join(items[:MOST])
    where = f"{total - left_off:,} in --json" if left_off else "all in --json"
    return f"{shown} and {total - MOST:,} more ({where})" if total > MOST else shown


def number(value: float | None, shape: str) -> str:
    """A number in a format such as "{:+.2f} %"; "-" if unknown."""
    return "-" if value is None else shape.format(value)


def chance(p: float | None) -> str:
    """A p-value with two significant digits; "-" if unknown."""
    return number(p, "{:.2g}" if p is None or p < 0.0995 else "{:.2f}")


def mark(significant: bool) -> str:
    """The mark of a significant or an insignificant result."""
    return "●" if significant else "○"


def marked(p: float | None, significant: bool) -> str:
    """A p-value with its mark."""
    return chance(p) + ("" if p is None else f" {mark(significant)}")
