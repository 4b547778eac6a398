"""How much noise is still quiet: from a profile, or from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quiet.errors import UsageError
from quiet.noise.units import parse_ns, parse_percent

KEYS = ("max_lost", "max_gap", "max_interrupts")


class Budgets(NamedTuple):
    """The most that a CPU may show and still be quiet; None: no limit."""

    lost_pct: float | None = None
    gap_ns: float | None = None
    interrupts: float | None = None  # in a second


NONE = Budgets()


def parse(texts: Mapping[str, object], where: str = "--{}") -> Budgets:
    """Budgets from texts by KEYS ("0.1%", "100us", 10). `where` names a key in messages. Raises UsageError."""

    def given(key: str) -> str | None:
        return None if texts.get(key) is None else str(texts[key])

    lost, gap, interrupts = (given(key) for key in KEYS)
    names = [where.format(key if "." in where else key.replace("_", "-")) for key in KEYS]
    return Budgets(
        lost_pct=None if lost is None else parse_percent(lost, names[0]),
        gap_ns=None if gap is None else parse_ns(gap, names[1]),
        interrupts=None if interrupts is None else _rate(interrupts, names[2]),
    )


def over(first: Budgets, second: Budgets) -> Budgets:
    """The first one's limits, the second one's where it has none."""
    return Budgets(
        second.lost_pct if first.lost_pct is None else first.lost_pct,
        second.gap_ns if first.gap_ns is None else first.gap_ns,
        second.interrupts if first.interrupts is None else first.interrupts,
    )


def _rate(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value < float("inf"):
        raise UsageError(f"{name} {text!r}: not a number of interrupts a second")
    return value
