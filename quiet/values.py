"""Compare and write values by what they mean, never as text: a CPU set is a set, "[never]" is the choice "never"."""

from __future__ import annotations

from quiet import cpulist
from quiet.errors import UsageError

TEXT, NUMBER, CPULIST, CPUMASK, CHOICE, UNIT = "text", "number", "cpulist", "cpumask", "choice", "unit"
KINDS = (TEXT, NUMBER, CPULIST, CPUMASK, CHOICE, UNIT)
_UNIT_WORDS = {"active", "masked", "stale"}  # of a systemd unit's; how it is enabled is told, and never written


def plain(kind: str, raw: str) -> str:
    """The value to show and to write back for what the kernel printed: "always [madvise] never" -> "madvise"."""
    if kind == CHOICE and "[" in raw:
        return raw.partition("[")[2].partition("]")[0]
    return raw


def same(kind: str, a: str | None, b: str | None) -> bool:
    """Whether two raw values mean the same; absent (None) equals only absent."""
    if a is None or b is None or a == b:
        return a == b
    return _meaning(kind, a) == _meaning(kind, b)


def _meaning(kind: str, raw: str) -> object:
    try:
        if kind == CPULIST:
            return cpulist.parse(raw)
        if kind == CPUMASK:
            return cpulist.parse_mask(raw)
        if kind == NUMBER:
            return int(raw, 0)
        if kind == UNIT:
            return _UNIT_WORDS & set(raw.split())
    except (ValueError, UsageError):
        return raw
    return plain(kind, raw)
