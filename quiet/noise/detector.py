"""Run detectors, each in a process that is pinned to its CPU."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil
from multiprocessing.connection import Connection
from statistics import median
from struct import Struct
from typing import NamedTuple

from quiet.errors import Refused, UsageError
from quiet.noise._noise import ffi, lib
from quiet.noise.attribute import Gap
from quiet.noise.calibration import calibrate, faults, interruptions, periods
from quiet.noise.chains import Chain
from quiet.noise.core_frequency import FEWEST, LENGTH, ChainFacts, chain_facts, time_chains
from quiet.noise.pinned import DetectorError, Pinned, started

CAPACITY = 1 << 20  # maximum number of gaps kept per CPU (24 MiB)
MEMORY = 256 << 20  # maximum memory for the gaps of all CPUs together
_GAP = Struct("=QQII")  # qn_gap in detector.h
GAP_BYTES = _GAP.size
LOOPS = 3  # the default threshold, in periods of the loop


@dataclass(frozen=True, slots=True)
class DetectorRequest:
    """The options of a detector, with times in ticks. `threshold`: None for LOOPS periods of the loop."""

    duration: int
    threshold: int | None = None
    look: int = 0  # the minimum length of gaps after which the thread's own counters are read; 0: never
    capacity: int = CAPACITY
    fifo: int = 0  # SCHED_FIFO priority; 0: an ordinary task


@dataclass(frozen=True, slots=True)
class Watched:
    """The result of one detector, with times in ticks; see qn_watch in detector.h.

    `gaps` holds the first `capacity` of `count` gaps; `limits`: the limitations of the measurement.
    """

    cpu: int
    period: float  # mean period of the loop
    step: int  # step of the clock
    threshold: int
    begin: int
    end: int
    readings: int
    count: int
    lost: int
    longest: int
    shortest: int
    looking: int
    switches: int
    faults: int
    histogram: dict[int, int]  # lowest value of a bucket -> number of gaps
    gaps: list[Gap]
    limits: tuple[str, ...]
    pid: int


class Placed(NamedTuple):
    """The report of a detector once it runs on its CPU, with times in ticks."""

    period: float
    step: int
    threshold: int
    limits: tuple[str, ...]


def _chains() -> list[Chain]:
    with contextlib.suppress(OSError):
        return time_chains(LENGTH, FEWEST)
    return []


def _facts() -> ChainFacts | None:
    with contextlib.suppress(OSError):
        return chain_facts()
    return None


_ORDERS: dict[str, Callable[[], object]] = {
    "fault": faults,
    "interrupt": interruptions,
    "facts": _facts,
    "chains": _chains,
}


class Detector(Pinned):
    """The process of a detector.

    Call in this order: `placed`, measurements on the CPU, `ready`, `go`, `leave`, `chains_after`, `result`. The methods
    up to `ready` raise DetectorError if the process has ended.
    """

    def __init__(self, cpu: int, request: DetectorRequest) -> None:
        """Fork the process. Raises DetectorError if memory is insufficient."""
        watch = ffi.new("qn_watch **")
        if error := lib.qn_watch_create(request.capacity, watch):
            raise DetectorError(
                f"no memory for {request.capacity:,} gaps: {os.strerror(-error)}; free memory, or measure fewer CPUs"
            )
        watch[0].duration, watch[0].look = request.duration, request.look
        self._threshold, self._placed = request.threshold, Placed(0.0, 0, 0, ())
        super().__init__("detector", cpu, watch[0], request.fifo)

    def _measure(self, channel: Connection, limits: tuple[str, ...]) -> int:
        period, step = calibrate(periods())
        self.state.threshold = threshold = self._threshold or round(LOOPS * period) + 1
        channel.send(Placed(period, step, threshold, limits))
        while (order := channel.recv()) != "watch":
            channel.send(_ORDERS[order]())
        if lib.qn_watch_run(self.state):
            return 1
        channel.send(_chains())
        return 0

    def placed(self) -> None:
        self._placed = self._answer()

    def check_threshold(self, wanted_ns: float | None) -> None:
        """Raise UsageError if the threshold is shorter than two iterations of the loop.

        `wanted_ns`: the requested threshold, None for the default.
        """
        least = 2 * self._placed.period
        if wanted_ns is not None and self._placed.threshold < least:
            least_ns = wanted_ns * least / self._placed.threshold
            raise UsageError(
                f"--threshold {wanted_ns:g}ns: shorter than two iterations of the loop on CPU {self.cpu}; "
                f"write {ceil(least_ns)}ns or more"
            )

    def interruption(self) -> float:
        """Measure the median time for which a timer interrupt stops the loop, in ticks; 0 if unknown.

        This time cannot be measured on a nohz_full CPU, because the kernel lets a task's timers expire on other CPUs.
        """
        lengths = [length for length in self._answer("interrupt") if length]
        return median(lengths) if lengths else 0

    def fault(self) -> int:
        """Measure the shortest duration of a page fault, in ticks; 0 if unknown."""
        return min(self._answer("fault"), default=0)

    def chain_facts(self) -> ChainFacts | None:
        """The properties of chains of additions on this CPU; None on a processor without chains."""
        facts: ChainFacts | None = self._answer("facts")
        return facts

    def chains(self) -> list[Chain]:
        """Time chains of core_frequency.LENGTH additions on this CPU; empty on a processor without chains."""
        timed: list[Chain] = self._answer("chains")
        return timed

    def chains_after(self) -> list[Chain]:
        """The chains timed after the measurement; empty if the process was killed or the processor has no chains."""
        with contextlib.suppress(EOFError, OSError):
            timed: list[Chain] = self._channel.recv()
            return timed
        return []

    def ready(self) -> None:
        """Start the detector and return when it is waiting for `go`."""
        with contextlib.suppress(OSError):  # the process has ended, which is handled below
            self._channel.send("watch")
        self._wait_until_ready()

    def leave(self) -> None:
        """Release the CPU; call this after all counts of the CPU have been read."""
        self.state.leave = 1

    def result(self) -> Watched:
        """The result after the measurement. Raises DetectorError if the process was killed or moved to another CPU."""
        self._check_result()
        watch = self.state
        kept = min(watch.gaps, watch.capacity)
        raw = ffi.buffer(lib.qn_watch_gaps(watch), kept * _GAP.size)
        return Watched(
            cpu=self.cpu,
            period=self._placed.period,
            step=self._placed.step,
            threshold=self._placed.threshold,
            begin=watch.begin,
            end=watch.end,
            readings=watch.readings,
            count=watch.gaps,
            lost=watch.lost,
            longest=watch.longest,
            shortest=watch.shortest if watch.gaps else 0,
            looking=watch.looking,
            switches=watch.voluntary + watch.involuntary,
            faults=watch.faults,
            histogram={lib.qn_bucket_floor(number): count for number, count in enumerate(watch.histogram) if count},
            gaps=[Gap(begin, length, flags) for begin, length, flags, _ in _GAP.iter_unpack(raw)],
            limits=self._placed.limits,
            pid=self.pid,
        )

    def close(self) -> None:
        super().close()
        lib.qn_watch_destroy(self.state)


def detectors(cpus: Sequence[int], request: DetectorRequest) -> contextlib.AbstractContextManager[list[Detector]]:
    """A context with detectors that run on their CPUs; see pinned.started()."""
    return started(lambda cpu: Detector(cpu, request), cpus)


def check_cpus(
    cpus: frozenset[int], online: frozenset[int], present: frozenset[int], option: str, fifo: int = 0
) -> None:
    """Raise UsageError for absent or offline CPUs, and Refused if real-time detectors would occupy all CPUs.

    `option`: the option that named the CPUs; `fifo`: SCHED_FIFO priority, 0: ordinary tasks.
    """
    from quiet import cpulist

    if absent := cpus - present:
        raise UsageError(f"{option} {cpulist.format(absent)}: no such CPU; this host has {cpulist.format(present)}")
    if dark := cpus - online:
        raise UsageError(f"{option} {cpulist.format(dark)}: offline; online CPUs: {cpulist.format(online)}")
    if fifo and (cpus >= online or cpus >= os.sched_getaffinity(0)):
        raise Refused(
            f"{option} {cpulist.format(cpus)}: with --fifo nothing else could run on these CPUs, and this command may "
            "use no others: leave out at least one CPU, or allow this command more CPUs (taskset)"
        )
