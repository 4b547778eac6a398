"""Times as people write and read them."""

from __future__ import annotations

import re

from quiet.errors import UsageError

_UNITS = {"ns": 1.0, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_TIME = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)")


def parse_ns(text: str, option: str) -> float:
    """ "100ns", "5us", "1.5ms" or "2s" in nanoseconds. Raises UsageError naming the option."""
    found = _TIME.fullmatch(text.strip())
    if not found or not float(found[1]):
        raise UsageError(f"{option} {text!r}: not a time; write a number with ns, us, ms or s, such as 100ns")
    return float(found[1]) * _UNITS[found[2]]


def parse_seconds(text: str, option: str) -> float:
    """A duration: seconds as a plain number, or with a unit."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s)?", text.strip())
    if not found:
        raise UsageError(f"{option} {text!r}: not a duration; write seconds, such as 10, or a number with a unit")
    return float(found[1]) * _UNITS[found[2] or "s"] / 1e9


def parse_percent(text: str, option: str) -> float:
    """ "0.1" or "0.1%". Raises UsageError naming the option."""
    try:
        value = float(text.strip().removesuffix("%"))
    except ValueError:
        value = -1
    if not 0 <= value <= 100:
        raise UsageError(f"{option} {text!r}: not a share of the time; write a percentage such as 0.1%")
    return value


def show(ns: float) -> str:
    """Nanoseconds with three digits and a unit: "87 ns", "1.25 us", "4.05 ms"."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("us", 1e3)):
        if ns >= size * 0.9995:
            value = ns / size
            return (f"{value:#.3g}".rstrip(".") if value < 999.5 else f"{value:.0f}") + f" {unit}"
    return f"{ns:.0f} ns"
