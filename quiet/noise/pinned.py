"""Run C loops that measure, each in a process that is pinned to one CPU and runs no Python while it measures.

The process locks its memory if that is permitted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from quiet.errors import QuietError
from quiet.machine import affinity
from quiet.noise._noise import lib

START_S = 60  # time limit until a process is ready


class DetectorError(QuietError):
    """A detector or a sleeping thread could not measure; the message has the reason."""


class Pinned(ABC):
    """A process on one CPU. `name`: its name in messages; `state`: the structure that it shares with its C loop."""

    def __init__(self, name: str, cpu: int, state: Any, fifo: int) -> None:
        """Fork the process. `fifo`: SCHED_FIFO priority; 0: an ordinary task."""
        self.cpu, self.state = cpu, state
        self._name, self._fifo = f"the {name} on CPU {cpu}", fifo
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
        if self._fifo and (failed := lib.qn_fifo(self._fifo)):
            limits.append(f"not SCHED_FIFO ({os.strerror(-failed)}): raise RLIMIT_RTPRIO or run as root")
        return self._measure(channel, tuple(limits))

    @abstractmethod
    def _measure(self, channel: Connection, limits: tuple[str, ...]) -> int:
        """Report on the channel (a text means an error), run the C loop, and return the exit status."""

    @abstractmethod
    def placed(self) -> None:
        """Wait until the process runs on its CPU. Raises DetectorError if it cannot."""

    def _answer(self, *orders: str) -> Any:
        """Send orders, and return the next answer. Raises DetectorError if the process has ended or failed."""
        try:
            for order in orders:
                self._channel.send(order)
            answer = self._channel.recv()
        except (EOFError, OSError):
            raise DetectorError(f"{self._name} ended before the measurement began; run the command again") from None
        if isinstance(answer, str):
            raise DetectorError(f"{self._name}: {answer}")
        return answer

    def _wait_until_ready(self) -> None:
        limit = time.monotonic() + START_S
        while not self.state.ready:
            if time.monotonic() > limit or self._ended():
                raise DetectorError(f"{self._name} ended or was not ready within {START_S} s; run the command again")
            time.sleep(0.002)

    def go(self) -> None:
        """Start the measurement."""
        self.state.go = 1

    def stop(self) -> None:
        """Stop the measurement early."""
        self.state.stop = 1

    def running(self) -> bool:
        """Whether the process is still measuring."""
        return not self.state.done and not self._ended()

    def _ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def _check_result(self) -> None:
        """Raise DetectorError if the process was killed or moved to another CPU."""
        if not self.state.done:
            raise DetectorError(f"{self._name} was killed before it finished; run the command again")
        if self.state.moved:
            raise DetectorError(
                f"{self._name}: another program moved it to CPU {self.state.cpu}: stop programs that set CPU affinities"
            )

    def close(self) -> None:
        """End the process if it still runs."""
        self.state.stop = 1
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        self._channel.close()


P = TypeVar("P", bound=Pinned)


@contextlib.contextmanager
def started(make: Callable[[int], P], cpus: Sequence[int]) -> Iterator[list[P]]:
    """Yield a process on each CPU once all run there; end them afterwards in any case. Raises DetectorError if one
    cannot run.
    """
    every: list[P] = []
    try:
        every.extend(make(cpu) for cpu in cpus)
        for each in every:
            each.placed()
        yield every
    finally:
        for each in every:
            each.close()


Tick = Callable[[float], bool]


def wait(processes: Sequence[Pinned], seconds: float, tick: Tick) -> None:
    """Start all measurements and wait until they have ended.

    `tick` is called periodically with the elapsed seconds, at most `seconds`; if it returns True, the measurement ends
    early. If `tick` raises an exception (for example after a signal), the measurement also ends early; the exception is
    raised when all processes have ended.
    """
    begun = time.monotonic()
    for each in processes:
        each.go()
    try:
        while any(each.running() for each in processes):
            passed = time.monotonic() - begun
            if tick(min(passed, seconds)):
                break
            time.sleep(0.1 if seconds - passed > 0.2 else 0.005)
    finally:
        for each in processes:
            each.stop()
        while any(each.running() for each in processes):
            time.sleep(0.005)
