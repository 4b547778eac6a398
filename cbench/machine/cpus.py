"""Select the CPUs to measure on."""

from __future__ import annotations

import os
from collections.abc import Sequence

from quiet import Reader, UsageError, format_cpus, parse_cpus, parse_requested_cpus, reachable


def default_cpu(isolated: frozenset[int], allowed: frozenset[int]) -> int:
    """The first isolated CPU that this process may use; without one, the last allowed CPU."""
    return min(isolated & allowed, default=max(allowed))


def choose_cpus(texts: Sequence[str], isolated: frozenset[int]) -> list[int]:
    """The requested CPUs ("0", "2-3", ...) in order, without duplicates; the default CPU if none is requested.

    Raises UsageError for a text that is not a CPU list, and for a CPU that is not online.
    """
    if not texts:
        return [default_cpu(isolated, frozenset(os.sched_getaffinity(0)) | reachable(isolated))]
    online = parse_cpus(Reader().text("/sys/devices/system/cpu/online") or "")
    chosen: list[int] = []
    for text in texts:
        for part in text.split(","):
            cpus = parse_requested_cpus(part, "--cpu")
            if not cpus:
                raise UsageError(f"--cpu {text!r}: empty; write a CPU number or a list like 0,2-3")
            chosen += [cpu for cpu in sorted(cpus) if cpu not in chosen]
    for cpu in chosen:
        if cpu not in online:
            raise UsageError(f"--cpu {cpu}: not online; this host has CPUs {format_cpus(online)}")
    return chosen


def one_cpu(text: str | None, isolated: frozenset[int]) -> int:
    """The one CPU to measure on; the default CPU if `text` is None. Raises UsageError as choose_cpus() does, and if
    `text` names several CPUs.
    """
    cpus = choose_cpus([text] if text is not None else [], isolated)
    if len(cpus) > 1:
        raise UsageError(f"--cpu {text}: give one CPU, not {len(cpus)}")
    return cpus[0]
