"""Convert nanoseconds and trace time stamps to ticks of the detector's clock, and ticks to nanoseconds."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from quiet.noise._noise import ffi, lib


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment as read on three clocks; the value of `ticks` is accurate to `spread` ticks."""

    ticks: int
    spread: int
    raw_ns: int
    monotonic_ns: int


def name() -> str:
    """The counter that the detector reads: "tsc", "cntvct" or "monotonic_raw"."""
    return str(ffi.string(lib.qn_clock_name()).decode())


def now() -> int:
    """The current value of the counter, in ticks."""
    return int(lib.qn_now())


def tick_ns() -> float:
    """The period of the kernel's tick, which drives CLOCK_MONOTONIC_COARSE (6 in time.h), in ns."""
    return time.clock_getres(6) * 1e9


def moment() -> Moment:
    """Read all three clocks at once."""
    reading = ffi.new("qn_moment *")
    lib.qn_moment_now(reading)
    return Moment(reading.ticks, reading.spread, reading.raw_ns, reading.monotonic_ns)


@dataclass(frozen=True, slots=True)
class Clock:
    """The rates of the clocks between two moments.

    CLOCK_MONOTONIC_RAW is never adjusted, so it is linear in the ticks.
    """

    first: Moment
    last: Moment

    @property
    def per_second(self) -> float:
        """The number of ticks in a second."""
        return (self.last.ticks - self.first.ticks) * 1e9 / (self.last.raw_ns - self.first.raw_ns)

    def ticks(self, ns: float) -> int:
        """Convert nanoseconds to ticks."""
        return round(ns * self.per_second / 1e9)

    def ns(self, ticks: float) -> float:
        """Convert ticks to nanoseconds."""
        return ticks * 1e9 / self.per_second

    def of_raw(self, raw_ns: int) -> int:
        """Convert a time of CLOCK_MONOTONIC_RAW, in nanoseconds, to ticks; the trace clock mono_raw uses this clock."""
        return self.first.ticks + self.ticks(raw_ns - self.first.raw_ns)

    def converter(self, trace_clock: str) -> Callable[[int], int]:
        """A function that converts the time stamps of a trace clock (tracefs.CLOCKS) to ticks."""
        return self.of_raw if trace_clock == "mono_raw" and name() != "monotonic_raw" else int

    def monotonic(self, ticks: int) -> float:
        """Convert ticks to a time of CLOCK_MONOTONIC, in nanoseconds; the kernel's tick follows this clock."""
        rate = (self.last.monotonic_ns - self.first.monotonic_ns) / (self.last.ticks - self.first.ticks)
        return self.first.monotonic_ns + (ticks - self.first.ticks) * rate
