"""Parse the limits up to which a CPU counts as quiet, from a profile or the command line, with times such as "5us"."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import NamedTuple

from quiet.errors import UsageError

_UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_TIME = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*(ns|us|µs|ms|s)?")


class Nanoseconds(float):
    """A time that is reported in whole nanoseconds."""


class Budgets(NamedTuple):
    """The limits up to which a CPU counts as quiet; None: no limit."""

    max_lost_pct: float | None = None
    max_gap_ns: float | None = None
    max_interrupts_per_s: float | None = None


NONE = Budgets()


def parse(texts: Mapping[str, object], where: str = "--{}") -> Budgets:
    """Parse the limits, such as "0.1%", "100us" or 10, of the keys in KEYS. `where` formats a key for messages.

    A missing key means no limit. Raises UsageError for an invalid limit.
    """
    values: list[float | None] = []
    for key, read in _READ.items():
        name = where.format(key if "." in where else key.replace("_", "-"))
        values.append(None if texts.get(key) is None else read(str(texts[key]), name))
    return Budgets(*values)


def over(first: Budgets, second: Budgets) -> Budgets:
    """The limits of `first`; missing ones come from `second`."""
    return Budgets(*(other if own is None else own for own, other in zip(first, second, strict=True)))


def _number(text: str, most: float, wrong: str) -> float:
    try:
        value = float(text) if text.isascii() else -1  # float() would also accept digits of other scripts
    except ValueError:
        value = -1
    if not 0 <= value <= most:
        raise UsageError(wrong)
    return value


def _rate(text: str, name: str) -> float:
    return _number(
        text, sys.float_info.max, f"{name} {text!r}: not a number of interrupts per second; write 0 or more, such as 10"
    )


def parse_ns(text: str, option: str) -> float:
    """Parse a time in nanoseconds from "100ns", "5us", "1.5ms" or "2s". Raises UsageError, which names the option."""
    match = _TIME.fullmatch(text.strip())
    if not match or not match[2] or not float(match[1]):
        raise UsageError(f"{option} {text!r}: not a time; write a number above 0 with ns, us, ms or s, such as 100ns")
    return float(match[1]) * _UNITS[match[2]]


def parse_seconds(text: str, option: str) -> float:
    """Parse a duration in seconds from a plain number of seconds or a time with a unit.

    Raises UsageError, which names the option.
    """
    match = _TIME.fullmatch(text.strip())
    if not match:
        raise UsageError(
            f"{option} {text!r}: not a duration; write seconds, such as 10, or a number with a unit, such as 500ms"
        )
    return float(match[1]) * _UNITS[match[2] or "s"] / 1e9


def parse_percent(text: str, option: str) -> float:
    """Parse a percentage from "0.1" or "0.1%". Raises UsageError, which names the option."""
    wrong = f"{option} {text!r}: not a percentage of the time; write 0% to 100%, such as 0.1%"
    return _number(text.strip().removesuffix("%"), 100, wrong)


def show(ns: float) -> str:
    """Format a time in nanoseconds with a unit; 1 us or more has at least three digits: "87 ns", "1.25 us"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size * 0.9995:
            value = ns / size
            return (f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{value:.0f}") + f" {unit}"
    return f"{ns:.0f} ns"


_READ = {"max_lost": parse_percent, "max_gap": parse_ns, "max_interrupts": _rate}
KEYS = (*_READ,)
