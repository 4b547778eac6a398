"""Define units by name: whether they are times, and whether more is better."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cbench.formats.json_value import Number

SECOND = 10**9
NANOSECONDS = {"ns": 1, "us": 1_000, "µs": 1_000, "μs": 1_000, "ms": 1_000_000, "s": SECOND}
"""The length of each unit of time in ns, by the names in other programs. Unicode has two characters for micro."""
TIMES = NANOSECONDS | {"second": SECOND, "seconds": SECOND, "sec": SECOND}
"""The length of each unit of time in ns, including spelled-out names."""
_DURATION = r"(s|ms|us|ns|min|minute|sec|second|h|hr|hour)s?"
_RATES = (
    re.compile(rf".+(/|[ _-]per[ _-]){_DURATION}", re.IGNORECASE),  # MB/s, tokens per second
    re.compile(r"[kmgt]?hz|[kmgt]?(fps|qps|rps|tps|pps|iops|mips)", re.IGNORECASE),
    re.compile(r"[kKMGTPE]?(FLOPS|OPS|i?[bB]ps)|[kKmMgGtTpPeE][Ff]lops"),  # FLOPs and ops are counts
)


def is_rate(unit: str) -> bool:
    """Whether the unit is a rate, such as operations per second, for which more is better."""
    return any(pattern.fullmatch(unit.strip()) for pattern in _RATES)


def nanoseconds(unit: str, values: Iterable[Number]) -> list[Number] | None:
    """The values converted to ns, unchanged if they are already in ns; None unless the unit is a time."""
    factor = TIMES.get(unit)
    return None if factor is None else [each if factor == 1 else float(f"{each * factor:.15g}") for each in values]
