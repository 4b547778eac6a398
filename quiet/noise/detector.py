"""Run the detector: one process per CPU, pinned, with locked memory, and without other work."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from statistics import median
from struct import Struct
from typing import Any, NamedTuple, Protocol

from quiet.errors import QuietError, Refused, UsageError
from quiet.machine import affinity
from quiet.noise._noise import ffi, lib
from quiet.noise.attribute import Gap
from quiet.noise.calibration import calibrate, faults, interruptions, periods
from quiet.noise.chains import Chain
from quiet.noise.core_frequency import FEWEST, LENGTH, ChainFacts, chain_facts, time_chains

CAPACITY = 1 << 20  # maximum number of gaps kept per CPU (24 MiB)
MEMORY = 256 << 20  # maximum memory for the gaps of all CPUs together
_GAP = Struct("=QQII")  # qn_gap in detector.h
GAP_BYTES = _GAP.size
LOOPS = 3  # the default threshold, in periods of the loop
START_S = 60  # time limit until a detector is ready


class DetectorError(QuietError):
    """A detector or a sleeping thread could not measure; the message has the reason."""


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


class Detector:
    """The process of a detector.

    Call in this order: `placed`, measurements on the CPU, `ready`, `go`, `leave`, `chains_after`, `result`. The methods
    up to `ready` raise DetectorError if the process has ended.
    """

    def __init__(self, cpu: int, request: DetectorRequest) -> None:
        """Fork the process. Raises DetectorError if memory is insufficient."""
        self.cpu, self.asked = cpu, request
        watch = ffi.new("qn_watch **")
        if error := lib.qn_watch_create(request.capacity, watch):
            raise DetectorError(
                f"no memory for {request.capacity:,} gaps: {os.strerror(-error)}; free memory, or measure fewer CPUs"
            )
        self.watch = watch[0]
        self.watch.duration, self.watch.look = request.duration, request.look
        self._channel, child = Pipe()
        parent = os.getpid()
        self.pid = os.fork()
        if not self.pid:
            code = 1
            try:
                self._channel.close()
                code = self._child(parent, child)
            finally:
                lib.qn_exit(code)
        child.close()
        self._placed = Placed(0.0, 0, 0, ())

    def _child(self, parent: int, channel: Connection) -> int:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)  # the parent decides, through the stop flag
        lib.qn_die_with_parent(parent)
        try:
            affinity.place(self.cpu)
        except QuietError as error:
            channel.send(str(error))
            return 1
        limits = []
        if failed := lib.qn_lock_memory():
            limits.append(f"memory is not locked ({os.strerror(-failed)}): raise RLIMIT_MEMLOCK or run as root")
        if self.asked.fifo and (failed := lib.qn_fifo(self.asked.fifo)):
            limits.append(f"not SCHED_FIFO ({os.strerror(-failed)}): raise RLIMIT_RTPRIO or run as root")
        period, step = calibrate(periods())
        threshold = self.asked.threshold or round(LOOPS * period) + 1
        self.watch.threshold = threshold
        channel.send(Placed(period, step, threshold, tuple(limits)))
        while (order := channel.recv()) != "watch":
            channel.send(_ORDERS[order]())
        if lib.qn_watch_run(self.watch):
            return 1
        channel.send(_chains())
        return 0

    def _answer(self, *orders: str) -> Any:
        try:
            for order in orders:
                self._channel.send(order)
            return self._channel.recv()
        except (EOFError, OSError):
            raise DetectorError(
                f"the detector on CPU {self.cpu} ended before the measurement began; run the command again"
            ) from None

    def placed(self) -> None:
        """Wait until the process runs on its CPU. Raises DetectorError if it cannot."""
        answer = self._answer()
        if not isinstance(answer, Placed):
            raise DetectorError(f"the detector on CPU {self.cpu}: {answer}")
        self._placed = answer

    def check_threshold(self, wanted_ns: float | None) -> None:
        """Raise UsageError if the threshold is shorter than two iterations of the loop.

        `wanted_ns`: the requested threshold, None for the default.
        """
        least = 2 * self._placed.period
        if wanted_ns is not None and self._placed.threshold < least:
            least_ns = wanted_ns * least / self._placed.threshold
            raise UsageError(
                f"--threshold {wanted_ns:g}ns: shorter than two iterations of the loop on CPU {self.cpu}; "
                f"write {least_ns:.0f}ns or more"
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
        limit = time.monotonic() + START_S
        while not self.watch.ready:
            if time.monotonic() > limit or os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                raise DetectorError(
                    f"the detector on CPU {self.cpu} ended or was not ready within {START_S} s; run the command again"
                )
            time.sleep(0.002)

    def go(self) -> None:
        """Start the measurement."""
        self.watch.go = 1

    def stop(self) -> None:
        """Stop the measurement early."""
        self.watch.stop = 1

    def leave(self) -> None:
        """Release the CPU; call this after all counts of the CPU have been read."""
        self.watch.leave = 1

    def running(self) -> bool:
        """Whether the detector is still measuring."""
        return not self.watch.done and not os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)

    def result(self) -> Watched:
        """The result after the measurement. Raises DetectorError if the process was killed or moved to another CPU."""
        watch = self.watch
        if not watch.done:
            raise DetectorError(f"the detector on CPU {self.cpu} was killed before it finished; run the command again")
        kept = min(watch.gaps, watch.capacity)
        raw = ffi.buffer(lib.qn_watch_gaps(watch), kept * _GAP.size)
        if watch.moved:
            raise DetectorError(
                f"another program moved the detector from CPU {self.cpu} to CPU {watch.cpu}: stop programs that set "
                "CPU affinities"
            )
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
        """End the process if it still runs, and free its memory."""
        self.watch.stop = self.watch.go = 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._channel.close()
        lib.qn_watch_destroy(self.watch)


@contextlib.contextmanager
def detectors(cpus: Sequence[int], request: DetectorRequest) -> Iterator[list[Detector]]:
    """Yield detectors that run on their CPUs; end them afterwards in any case.

    Raises DetectorError if one cannot run.
    """
    started: list[Detector] = []
    try:
        started.extend(Detector(cpu, request) for cpu in cpus)
        for each in started:
            each.placed()
        yield started
    finally:
        for each in started:
            each.close()


Tick = Callable[[float], bool]


class Startable(Protocol):
    """A Detector or a sleeping thread, which wait() starts and waits for."""

    def go(self) -> None:
        """Start the measurement."""

    def stop(self) -> None:
        """Stop the measurement early."""

    def running(self) -> bool:
        """Whether the measurement is still running."""


def wait(detectors: Sequence[Startable], seconds: float, tick: Tick) -> None:
    """Start all detectors and wait until they have ended.

    `tick` is called periodically with the elapsed seconds, at most `seconds`; if it returns True, the measurement ends
    early. If `tick` raises an exception (for example after a signal), the measurement also ends early; the exception is
    raised when all detectors have ended.
    """
    started = time.monotonic()
    for each in detectors:
        each.go()
    try:
        while any(each.running() for each in detectors):
            passed = time.monotonic() - started
            if tick(min(passed, seconds)):
                break
            time.sleep(0.1 if seconds - passed > 0.2 else 0.005)
    finally:
        for each in detectors:
            each.stop()
        while any(each.running() for each in detectors):
            time.sleep(0.005)


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
