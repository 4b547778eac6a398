"""Compare values by meaning rather than as text: a CPU set is a set, and "[never]" is the choice "never"."""

from __future__ import annotations

from collections.abc import Callable

from quiet import cpulist
from quiet.errors import UsageError

TEXT, NUMBER, NUMBERS, CPULIST, CPUMASK, CHOICE = "text", "number", "numbers", "cpulist", "cpumask", "choice"
UNIT = "unit"  # a systemd unit's state, as text
SCHEMATA = "schemata"  # one resource of a resctrl group, domain by domain: "0=fff;1=0f0"
FLAG = "flag"  # a module parameter, Y or N, which may also be written as 1 or 0
_UNIT_WORDS = {"active", "masked", "stale"}  # states of a systemd unit that are written; enablement is only reported
_FLAGS = {"y": True, "1": True, "true": True, "on": True, "n": False, "0": False, "false": False, "off": False}


def plain(kind: str, raw: str) -> str:
    """The value to show and to restore, extracted from the kernel's text: "always [madvise] never" -> "madvise"."""
    if kind == CHOICE and "[" in raw:
        return raw.partition("[")[2].partition("]")[0]
    return raw


def same(kind: str, a: str | None, b: str | None) -> bool:
    """Whether two raw values have the same meaning; absent (None) equals only absent."""
    if a is None or b is None or a == b:
        return a == b
    return _meaning(kind, a) == _meaning(kind, b)


def _meaning(kind: str, raw: str) -> object:
    try:
        return MEANINGS[kind](raw) if kind in MEANINGS else raw
    except (ValueError, UsageError):
        return raw


def _domains(raw: str) -> dict[str, str]:
    pairs = (domain.partition("=") for domain in raw.split(";"))
    return {name.strip(): value.strip().lstrip("0").lower() for name, _, value in pairs}


# conversion of raw values for comparison, by kind; other kinds are compared unchanged
MEANINGS: dict[str, Callable[[str], object]] = {
    NUMBER: lambda raw: int(raw, 0),
    NUMBERS: lambda raw: [int(number, 0) for number in raw.split()],
    CPULIST: cpulist.parse,
    CPUMASK: cpulist.parse_mask,
    CHOICE: lambda raw: plain(CHOICE, raw),
    UNIT: lambda raw: _UNIT_WORDS & set(raw.split()),
    SCHEMATA: _domains,
    FLAG: lambda raw: _FLAGS.get(raw.lower(), raw),
}
