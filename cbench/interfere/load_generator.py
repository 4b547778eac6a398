"""A load on another CPU: a process that runs a built-in workload in a loop, steadily or in bursts.

It is pinned, ends with its parent, and is started and stopped by handshake, so that it runs during all of a
measurement. Run as `python -m cbench.interfere.load_generator PARENT`, one JSON object a line on both of its pipes.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from cbench.machine.process import die_with_parent
from cbench.workloads import registry
from quiet import QuietError, Refused, UsageError, place

CALL_S = 0.001
"""How long one call of the workload is to take: what a stop may be late, or a burst too long."""

PATIENCE_S = 60.0
TIMER_ABSTIME = 1  # clock_nanosleep(2)
Run = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run where: a built-in workload on one CPU; bursts of `busy_ms` every `period_ms`, 0: steadily."""

    workload: str
    cpu: int
    params: Mapping[str, int]
    period_ms: float = 0
    busy_ms: float = 0


@dataclass(slots=True)
class Figures:
    """What a load did, by its own account: calls, time it ran for (s), CPU time it got (s); None while it runs."""

    calls: int | None = None
    seconds: float | None = None
    cpu_seconds: float | None = None

    @property
    def busy_pct(self) -> float | None:
        return 100 * self.cpu_seconds / self.seconds if self.cpu_seconds is not None and self.seconds else None


def function(spec: Spec) -> tuple[Run, Any]:
    """The workload as a function of its number of rounds, and what owns its memory. Raises UsageError."""
    from cbench.workloads.loader import builtin

    loaded = builtin(registry.find(spec.workload).function, spec.params)
    return lambda n: int(loaded.run(loaded.state, n)), loaded


def rounds(run: Run) -> int:
    """How many rounds take CALL_S, found by doubling."""
    n = 1
    while True:
        took = min(_seconds(run, n) for _ in range(3))  # an interruption must not pass for a long call
        if took >= CALL_S / 2 or n >= 2**40:
            return max(round(n * CALL_S / max(took, 1e-9)), 1)
        n *= 2


def _seconds(run: Run, n: int) -> float:
    begun = time.monotonic()
    run(n)
    return time.monotonic() - begun


def serve(parent: int) -> None:
    """The process's whole life: prepare, wait for "go", run until told to stop, say what was done."""
    if not die_with_parent(parent):
        sys.exit(1)
    try:
        spec = Spec(**json.loads(sys.stdin.readline()))
        place(spec.cpu)  # first: memory then comes from this CPU's own node
        run, _owner = function(spec)
        n = rounds(run)
    except QuietError as error:
        _say(event="error", message=str(error), exit_code=error.exit_code)
        return
    _say(event="ready", n=n)
    if not sys.stdin.readline():
        return
    begun, used = time.monotonic(), time.process_time()
    calls = _loop(run, n, spec)
    _say(event="stopped", calls=calls, seconds=time.monotonic() - begun, cpu_seconds=time.process_time() - used)


def _loop(run: Run, n: int, spec: Spec) -> int:
    told = select.poll()
    told.register(0, select.POLLIN | select.POLLHUP)
    calls, start = 0, time.monotonic_ns()
    end = start + round(spec.busy_ms * 1e6)
    while True:
        run(n)
        calls += 1
        if calls == 1:
            _say(event="running")
        if spec.period_ms and time.monotonic_ns() >= end:
            start = _next_burst(start, round(spec.period_ms * 1e6))
            end = start + round(spec.busy_ms * 1e6)
        if told.poll(0):
            return calls


def _next_burst(start: int, period: int) -> int:
    """Sleep until the next multiple of the period (ns) after `start`, which bursts must not shift."""
    start += period * max((time.monotonic_ns() - start + period - 1) // period, 1)
    until = (ctypes.c_int64 * 2)(*divmod(start, 1_000_000_000))
    while ctypes.CDLL(None).clock_nanosleep(time.CLOCK_MONOTONIC, TIMER_ABSTIME, until, None):
        pass  # EINTR
    return start


def _say(**content: object) -> None:
    sys.stdout.write(json.dumps(content) + "\n")
    sys.stdout.flush()


class _Load:
    """The parent's side of one load."""

    def __init__(self, spec: Spec) -> None:
        self.name = f"the load {spec.workload} on CPU {spec.cpu}"
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cbench.interfere.load_generator", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the parent, which stops it
            bufsize=0,
        )

    def send(self, line: str) -> None:
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(line.encode() + b"\n")

    def receive(self, wanted: str) -> Mapping[str, Any]:
        """The next message, which must be of this kind; QuietError for anything else."""
        assert self.process.stdout is not None
        line = b""
        poll = select.poll()
        poll.register(self.process.stdout, select.POLLIN)
        deadline = time.monotonic() + PATIENCE_S
        while not line.endswith(b"\n"):
            if not poll.poll(max(deadline - time.monotonic(), 0) * 1000):
                raise QuietError(f"{self.name}: not {wanted} within {PATIENCE_S:g} s; ended it")
            data = os.read(self.process.stdout.fileno(), 1)  # messages are few and short
            if not data:
                raise QuietError(f"{self.name}: ended early ({self.process.wait()}), before it was {wanted}")
            line += data
        message: dict[str, Any] = json.loads(line)
        if message["event"] == "error":
            kind = Refused if message["exit_code"] == Refused.exit_code else UsageError
            raise kind(f"{self.name}: {message['message']}")
        return message

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


@contextlib.contextmanager
def running(spec: Spec, measured: int) -> Iterator[Figures]:
    """The load runs inside; afterwards the figures are filled in. Never on the `measured` CPU, and killed on any error.

    Raises Refused when its CPU may not be used, UsageError for a wrong spec, QuietError when it ended before its time.
    """
    if spec.cpu == measured:
        raise UsageError(f"a load on CPU {spec.cpu} would run on the CPU that is measured")
    figures = Figures()
    load = _Load(spec)
    try:
        load.send(json.dumps(asdict(spec)))
        load.receive("ready")
        load.send("go")
        load.receive("running")
        yield figures
        load.send("stop")
        stopped = load.receive("stopped")
        figures.calls, figures.seconds = stopped["calls"], stopped["seconds"]
        figures.cpu_seconds = stopped["cpu_seconds"]
    finally:
        load.close()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
