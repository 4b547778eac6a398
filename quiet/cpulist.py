"""Parse and format CPU sets in the kernel's two notations: lists ("2-3,8") and hexadecimal masks ("ff,00000001").

Sources: kernel document admin-guide/kernel-parameters ("cpu lists"); lib/bitmap-str.c.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import groupby

from quiet.errors import UsageError

CpuSet = frozenset[int]

_HIGHEST = 1 << 16  # far above any CONFIG_NR_CPUS; a typo must not exhaust memory


@cache
def parse(text: str) -> CpuSet:
    """Parse a CPU list such as "0-3,8" or "0-10:2/4" (the first 2 of every 4); "" and "(null)" are the empty set.

    Raises UsageError, which names the wrong part.
    """
    cpus: set[int] = set()
    text = text.strip()
    if text in ("", "(null)", "\0"):
        return frozenset()
    for part in text.split(","):
        cpus.update(_part(part.strip(), text))
    return frozenset(cpus)


def _part(part: str, whole: str) -> Iterable[int]:
    span, _, stride = part.partition(":")
    first, dash, last = span.partition("-")
    used, _, group = stride.partition("/")
    numbers = [first, last if dash else first, used or "1", group or used or "1"]
    # str.isdecimal also accepts digits of other scripts; the kernel does not
    plain = all(n.isascii() and n.isdecimal() and len(n) < 10 for n in numbers)
    if not plain or (":" in part and not (used and group)):
        raise UsageError(
            f"{whole!r} is not a CPU list: {part!r} is not a number or a range; write a list such as 2-3,8"
        )
    low, high, width, step = (int(n) for n in numbers)
    if high < low or high >= _HIGHEST or not 0 < width <= step:
        raise UsageError(f"{whole!r} is not a CPU list: {part!r} is not a range of CPUs; write a list such as 2-3,8")
    return (cpu for cpu in range(low, high + 1) if (cpu - low) % step < width)


def format(cpus: Iterable[int]) -> str:  # noqa: A001 - the pair of parse, always used as cpulist.format
    """Write a CPU set as the shortest list of ranges, in ascending order: {2, 3, 8} -> "2-3,8"."""
    spans = []
    # within a range, the difference between a CPU and its position in the sorted list is constant
    for _, group in groupby(enumerate(sorted(set(cpus))), lambda pair: pair[1] - pair[0]):
        members = [cpu for _, cpu in group]
        spans.append(f"{members[0]}-{members[-1]}" if len(members) > 1 else str(members[0]))
    return ",".join(spans)


_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


@cache
def parse_mask(text: str) -> CpuSet:
    """Parse a mask in the kernel's format: hexadecimal, in groups of eight digits separated by commas.

    "" is the empty set. Raises UsageError for text that is not hexadecimal.
    """
    groups = [group.strip() for group in text.strip().split(",")] if text.strip() else []
    if not all(group and _HEXADECIMAL.issuperset(group) for group in groups):
        raise UsageError(f"'{text.strip()}' is not a CPU mask (hexadecimal digits in groups, such as ff,00000001)")
    bits = int("".join(group.rjust(8, "0") for group in groups) or "0", 16)
    return frozenset(cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1)


def format_mask(cpus: Iterable[int]) -> str:
    """Format a mask as the kernel does: no "0x", and at most eight digits per group, because the kernel rejects longer
    groups with EOVERFLOW.
    """
    bits = sum(1 << cpu for cpu in set(cpus))
    digits = f"{bits:x}"
    digits = digits.rjust(-(-len(digits) // 8) * 8, "0")
    groups = [digits[i : i + 8] for i in range(0, len(digits), 8)]
    groups[0] = groups[0].lstrip("0") or "0"
    return ",".join(groups)
