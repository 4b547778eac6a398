"""Parse working sets and numbers of accesses, and select the working sets that fit into free memory."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cbench.machine.topology import UNITS
from cbench.workloads.selection import MEMORY_SHARE
from quiet import UsageError

SIZES = "1K-2G"
QUICK_SIZES = "1K-64M"
_SIZE = re.compile(r"(\d+)\s*([KMG]?)(?:i?B)?", re.IGNORECASE | re.ASCII)
_NUMBER = re.compile(r"(\d+)(?:e(\d{1,2}))?", re.IGNORECASE | re.ASCII)


def binary(size: float) -> str:
    """A size in bytes as text, such as "1.5 KiB" for 1536."""
    for unit, factor in reversed(UNITS.items()):
        if size >= factor:
            return f"{size / factor:g} {unit}iB"
    return f"{size:g} B"


def sizes(text: str) -> tuple[int, ...]:
    """The sizes in bytes that a text such as "4K,1M-8M" denotes, ascending; a range contains its start and each
    doubling of it up to the end. Raises UsageError for any other text.
    """
    working_sets: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        low, high = _size(first, text), _size(last if dash else first, text)
        if low > high:
            raise UsageError(f"--sizes {text!r}: {part.strip()} is descending; write the smaller size first")
        while low <= high:
            working_sets.add(low)
            low *= 2
    return tuple(sorted(working_sets))


def _size(text: str, whole: str) -> int:
    match = _SIZE.fullmatch(text.strip())
    number = int(match[1]) * UNITS.get(match[2].upper(), 1) if match else 0
    if not number:
        raise UsageError(f"--sizes {whole!r}: {text.strip()!r} is not a size; write it like 4K,64K or 1K-2G")
    return number


def accesses(text: str) -> tuple[int, ...]:
    """The positive numbers that a text such as "1e4,200000" denotes, ascending. Raises UsageError for any other
    text.
    """
    numbers = set()
    for part in text.replace("_", "").split(","):
        match = _NUMBER.fullmatch(part.strip())
        number = int(match[1]) * 10 ** int(match[2] or 0) if match else 0
        if not number:
            raise UsageError(
                f"--accesses {text!r}: {part.strip()!r} is not a positive whole number; write it like 1e4,1e5"
            )
        numbers.add(number)
    return tuple(sorted(numbers))


def fitting(wanted: Iterable[int], free: int) -> tuple[tuple[int, ...], str]:
    """The sizes that fit into `free` bytes of memory, and a line about the sizes that do not ("" if all do). Raises
    UsageError if none fits.
    """
    wanted = tuple(wanted)
    most = int(MEMORY_SHARE * free)
    fit = tuple(size for size in wanted if size <= most)
    if not fit:
        raise UsageError(
            f"--sizes: {binary(min(wanted))} is more than {100 * MEMORY_SHARE:g} % of the {free >> 20:,} MiB of free "
            "memory; write a smaller size"
        )
    if len(fit) == len(wanted):
        return fit, ""
    left_out = ", ".join(binary(size) for size in wanted if size > most)
    share = f"{100 * MEMORY_SHARE:g} % of the {free >> 20:,} MiB of free memory"
    return fit, f"working sets left out: {left_out}: each is more than {share}"
