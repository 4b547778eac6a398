"""Run the sleeping thread: one pinned process per CPU."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection

from quiet.noise._noise import ffi, lib
from quiet.noise.pinned import DetectorError, Pinned, started

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


class Sleeper(Pinned):
    """A sleeping process. Call in this order: `placed`, `go`, `result`."""

    def __init__(self, cpu: int, request: SleepRequest) -> None:
        """Fork the process. Raises DetectorError if memory is insufficient."""
        wake = ffi.new("qn_wake **")
        if error := lib.qn_wake_create(wake):
            raise DetectorError(f"no memory for the histogram: {os.strerror(-error)}; free memory")
        wake[0].period, wake[0].duration, wake[0].stop_above = request.period, request.duration, request.stop_above
        self._limits: tuple[str, ...] = ()
        super().__init__("thread", cpu, wake[0], request.fifo)

    def _measure(self, channel: Connection, limits: tuple[str, ...]) -> int:
        channel.send(limits)
        return 1 if lib.qn_wake_run(self.state) else 0

    def placed(self) -> None:
        self._limits = self._answer()
        self._wait_until_ready()

    def worst(self) -> tuple[WakeUp, ...]:
        """The worst wake-ups so far, the highest latency first; may be called while the thread runs."""
        seen = (WakeUp(each.latency, each.ticks, each.number) for each in self.state.worst)
        return tuple(sorted((each for each in seen if each.latency), reverse=True))

    def result(self) -> Slept:
        """The result after the measurement. Raises DetectorError if the thread was killed, moved or could not sleep."""
        wake = self.state
        if wake.done and wake.error:
            raise DetectorError(f"{self._name} could not sleep: {os.strerror(wake.error)}")
        self._check_result()
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
            slack=0 if self._fifo and not self._limits else wake.slack,
            faults=wake.faults,
            limits=self._limits,
        )

    def close(self) -> None:
        super().close()
        lib.qn_wake_destroy(self.state)


def sleepers(cpus: Sequence[int], request: SleepRequest) -> contextlib.AbstractContextManager[list[Sleeper]]:
    """A context with sleeping threads that run on their CPUs; see pinned.started()."""
    return started(lambda cpu: Sleeper(cpu, request), cpus)
