"""Define the events that a PMU can count: one name on all machines, and the request for each kind of PMU.

Sources: perf_event_open(2) for the generic events; Arm ARM D13 (PMUv3 event numbers); AMD PPR for family 17h/19h, "Core
Performance Monitor Counters"; Intel SDM volume 3B, chapter 20, and Intel's perfmon event lists for Skylake and later.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quiet import UsageError

HARDWARE, SOFTWARE, CACHE, RAW = 0, 1, 3, 4
"""The values of perf_type_id."""

AUTO, NONE = "auto", "none"
MOST = 7
"""The maximum number of events in addition to the counter: CB_MAX_OTHERS in cbench/c/counters.h."""

AMD, INTEL = "AuthenticAMD", "GenuineIntel"


@dataclass(frozen=True, slots=True)
class CounterEvent:
    """One event. `generic`: the (type, config) that the kernel maps to the CPU's own event, None if there is none;
    `raw`: the config by CPU vendor.

    `armv8`: the PMUv3 event number, None if there is none. `armv8_name`: the event's name in sysfs if the PMU
    implements it, "" if only the number is known.
    """

    unit: str
    meaning: str
    generic: tuple[int, int] | None = None
    armv8: int | None = None
    armv8_name: str = ""
    raw: Mapping[str, int] = field(default_factory=dict)

    @property
    def software(self) -> bool:
        return self.generic is not None and self.generic[0] == SOFTWARE


def _misses(cache: int) -> tuple[int, int]:
    """The (type, config) of a generic cache's read misses: id, operation 0 (read) << 8, result 1 (miss) << 16."""
    return CACHE, 1 << 16 | cache


EVENTS: Mapping[str, CounterEvent] = {
    "cycles": CounterEvent("cycles", "core cycles", (HARDWARE, 0), 0x11, "cpu_cycles"),
    "instructions": CounterEvent("instructions", "instructions retired", (HARDWARE, 1), 0x08, "inst_retired"),
    "branches": CounterEvent("branches", "branches retired", (HARDWARE, 4), 0x21, "br_retired"),
    "branch-misses": CounterEvent("mispredictions", "mispredicted branches", (HARDWARE, 5), 0x10, "br_mis_pred"),
    "l1d-misses": CounterEvent(
        "misses", "reads that missed the first-level data cache", _misses(0), 0x03, "l1d_cache_refill"
    ),
    "l2-misses": CounterEvent(
        "misses",
        "accesses that missed the second-level cache",
        None,
        0x17,
        "l2d_cache_refill",
        {AMD: 0x0964, INTEL: 0x10D1},
    ),
    "llc-misses": CounterEvent(
        "misses", "reads that missed the last-level cache", _misses(2), 0x37, "ll_cache_miss_rd"
    ),
    "dtlb-misses": CounterEvent("misses", "reads that missed the data TLB", _misses(3), 0x05, "l1d_tlb_refill"),
    "itlb-misses": CounterEvent(
        "misses", "fetches that missed the instruction TLB", _misses(4), 0x02, "l1i_tlb_refill"
    ),
    "interrupts": CounterEvent(
        "interrupts", "interrupts taken by the core", None, 0x86, "", {AMD: 0x2C, INTEL: 0x01CB}
    ),
    "smis": CounterEvent("interrupts", "system management interrupts taken by the core", None, None, "", {AMD: 0x2B}),
    "task-clock": CounterEvent("ns", "time on the CPU", (SOFTWARE, 1)),
    "page-faults": CounterEvent("faults", "page faults", (SOFTWARE, 2)),
    "context-switches": CounterEvent("switches", "context switches", (SOFTWARE, 3)),
    "cpu-migrations": CounterEvent("migrations", "moves to another CPU", (SOFTWARE, 4)),
    "minor-faults": CounterEvent("faults", "page faults without a wait for a device", (SOFTWARE, 5)),
    "major-faults": CounterEvent("faults", "page faults with a wait for a device", (SOFTWARE, 6)),
    "alignment-faults": CounterEvent("faults", "unaligned accesses that the kernel had to perform", (SOFTWARE, 7)),
    "emulation-faults": CounterEvent("faults", "instructions that the kernel had to emulate", (SOFTWARE, 8)),
}

USER_FAULTS = ("page-faults", "minor-faults", "major-faults", "alignment-faults", "emulation-faults")
BUSY = ("cycles", "cycles:u", "instructions", "instructions:u", "branches", "branches:u")
"""Events that any code causes; if one of these stays 0, its counter does not work."""
MODES = {"u": "in user mode only", "k": "in the kernel only"}
IN_KERNEL = "instructions:k"
"""This count is above 0 only if the kernel ran between two user-mode reads."""

INTERRUPTS = "interrupts"
AUTOMATIC = (IN_KERNEL, "instructions", "branch-misses", INTERRUPTS)
"""The events counted in addition to cycles by default."""
AUTOMATIC_USER = ("instructions:u", "branch-misses:u")
"""The events counted by default where counting kernel mode is not permitted."""


def split(name: str) -> tuple[CounterEvent, str] | None:
    """The event and the mode of a name such as "cycles:u": "u", "k", or "" for both modes. None if there is no such
    event.
    """
    base, colon, mode = name.partition(":")
    event = EVENTS.get(base)
    if event is None or (colon and (mode not in MODES or event.software)):
        return None
    return event, mode


def parse_events(text: str) -> tuple[str, ...] | None:
    """The names in `--events A,B`; None for "auto", () for "none". Raises UsageError for a name that is not an event,
    and for more than MOST events.
    """
    if text == AUTO:
        return None
    if text == NONE:
        return ()
    chosen = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    for name in chosen:
        if split(name) is None:
            known = ", ".join(EVENTS)
            raise UsageError(f"--events {name!r}: unknown; use auto or none alone, or {known} (hardware with :u or :k)")
    if len(chosen) > MOST:
        raise UsageError(f"--events: {len(chosen)} events; at most {MOST} fit in addition to the counter")
    return chosen
