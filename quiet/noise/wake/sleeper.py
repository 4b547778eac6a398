"""Run the sleeping thread: one process per CPU, pinned, with locked memory, and without Python while it measures."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection

from quiet.errors import QuietError
from quiet.machine import affinity
from quiet.noise._noise import ffi, lib
from quiet.noise.detector import START_S, DetectorError

BIN_NS = int(lib.QN_WAKE_BIN_NS)


@dataclass(frozen=True, slots=True)
class SleepRequest:
    """The options of a sleeping thread, with times in nanoseconds.

    `stop_above` 0: never stop early; `fifo`: SCHED_FIFO priority, 0: an ordinary task.
    """

    period: int
    duration: int
    stop_above: int = 0
    fifo: int = 0


@dataclass(frozen=True, slots=True, order=True)
class WakeUp:
    """One wake-up: its lateness in ns, its time in ticks of clock.now(), and its index from 0."""

    latency: int
    ticks: int
    number: int


@dataclass(frozen=True, slots=True)
class Slept:
    """The result of one thread.

    `begin`, `end`: in ticks. `total`, `least`, `most`, `slack`: in ns. `bins`: the number of wake-ups by bin index, in
    bins of BIN_NS; `beyond`: the number of wake-ups later than the last bin.
    """

    cpu: int
    pid: int
    begin: int
    end: int
    wakes: int
    missed: int
    total: int
    least: int
    most: int
    beyond: int
    bins: dict[int, int]
    worst: tuple[WakeUp, ...]
    slack: int
    faults: int
    limits: tuple[str, ...]


class Sleeper:
    """A sleeping process. Call in this order: `placed`, `go`, `result`."""

    def __init__(self, cpu: int, request: SleepRequest) -> None:
        """Fork the process. Raises DetectorError if memory is insufficient."""
        self.cpu, self.asked = cpu, request
        made = ffi.new("qn_wake **")
        if error := lib.qn_wake_create(made):
            raise DetectorError(f"no memory for the histogram: {os.strerror(-error)}; free memory")
        self.wake = made[0]
        self.wake.period, self.wake.duration = request.period, request.duration
        self.wake.stop_above = request.stop_above
        self.limits: tuple[str, ...] = ()
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
        channel.send(tuple(limits))
        return 1 if lib.qn_wake_run(self.wake) else 0

    def placed(self) -> None:
        """Wait until the process is waiting for go(). Raises DetectorError if it ended or takes too long."""
        try:
            answer = self._channel.recv()
        except (EOFError, OSError):
            raise DetectorError(
                f"the thread on CPU {self.cpu} ended before the measurement began; run the command again"
            ) from None
        if not isinstance(answer, tuple):
            raise DetectorError(str(answer))
        self.limits = answer
        limit = time.monotonic() + START_S
        while not self.wake.ready:
            if time.monotonic() > limit or self._ended():
                raise DetectorError(
                    f"the thread on CPU {self.cpu} ended or was not ready within {START_S} s; run the command again"
                )
            time.sleep(0.002)

    def go(self) -> None:
        """Start the cycle of sleeping and waking."""
        self.wake.go = 1

    def stop(self) -> None:
        """End early, after the next wake-up."""
        self.wake.stop = 1

    def running(self) -> bool:
        """Whether the thread is still sleeping and waking."""
        return not self.wake.done and not self._ended()

    def _ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def worst(self) -> tuple[WakeUp, ...]:
        """The worst wake-ups so far, the highest latency first; may be called while the thread runs."""
        seen = (WakeUp(each.latency, each.ticks, each.number) for each in self.wake.worst)
        return tuple(sorted((each for each in seen if each.latency), reverse=True))

    def result(self) -> Slept:
        """The result after the measurement. Raises DetectorError if the thread was killed, moved or could not sleep."""
        wake = self.wake
        if not wake.done:
            raise DetectorError(f"the thread on CPU {self.cpu} was killed before it finished; run the command again")
        if wake.error:
            raise DetectorError(f"the thread on CPU {self.cpu} could not sleep: {os.strerror(wake.error)}")
        if wake.moved:
            raise DetectorError(
                f"another program moved the thread from CPU {self.cpu} to CPU {wake.cpu}: stop programs that set "
                "CPU affinities"
            )
        return Slept(
            cpu=self.cpu,
            pid=self.pid,
            begin=wake.begin,
            end=wake.end,
            wakes=wake.wakes,
            missed=wake.missed,
            total=wake.sum,
            least=wake.least if wake.wakes else 0,
            most=wake.most,
            beyond=wake.beyond,
            bins={number: count for number, count in enumerate(ffi.unpack(wake.bins, len(wake.bins))) if count},
            worst=self.worst(),
            slack=0 if self.asked.fifo and not self.limits else wake.slack,
            faults=wake.faults,
            limits=self.limits,
        )

    def close(self) -> None:
        """End the process if it still runs, and free its memory."""
        self.wake.stop = 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._channel.close()
        lib.qn_wake_destroy(self.wake)


@contextlib.contextmanager
def sleepers(cpus: Sequence[int], request: SleepRequest) -> Iterator[list[Sleeper]]:
    """Yield sleeping threads that run on their CPUs; end them afterwards in any case.

    Raises DetectorError if one cannot run.
    """
    started: list[Sleeper] = []
    try:
        started.extend(Sleeper(cpu, request) for cpu in cpus)
        for each in started:
            each.placed()
        yield started
    finally:
        for each in started:
            each.close()
