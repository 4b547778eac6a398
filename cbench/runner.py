"""Starts the measuring process, waits for its chunks, and outlives whatever becomes of it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping

from cbench import wire
from cbench._cbench import ffi, lib
from cbench.causes import Causes
from cbench.model import Session, Trial, Workload
from quiet.errors import Incomplete, QuietError, Refused, UsageError
from quiet.noise.follow import Follower

Progress = Callable[[str, int], None]

KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
"""What of the environment the worker sees: its size moves the stack, so it is kept small and fixed."""


class Worker:
    """A running `cbench.worker` in a session of its own, with the parent's ends of its pipes."""

    def __init__(self) -> None:
        to_worker, self._out = os.pipe()
        self._in, from_worker = os.pipe()
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        self._rest = b""
        ends = [str(to_worker), str(from_worker), str(os.getpid())]
        with fixed_addresses():
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "cbench.worker", *ends],
                pass_fds=(to_worker, from_worker),
                stdin=subprocess.DEVNULL,
                stdout=2,  # user code that prints must not end up in the results
                env={**environment, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        os.close(to_worker)
        os.close(from_worker)

    def send(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # then the next receive() sees the end
            os.write(self._out, data)

    def receive(self, timeout: float) -> wire.Message | None:
        """The next message, None when the worker has ended; TimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                raise TimeoutError
            data = os.read(self._in, 1 << 20)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return wire.decode(line)

    def close(self) -> None:
        """End the worker and whatever it started, if it has not ended by itself."""
        if self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._in)
        os.close(self._out)


@contextlib.contextmanager
def fixed_addresses() -> Iterator[None]:
    """What is executed meanwhile gets no address space randomisation, where that is permitted."""
    before = ffi.new("int *")
    lib.cb_fix_addresses(1, before)
    try:
        yield
    finally:
        lib.cb_fix_addresses(before[0], ffi.new("int *"))


@contextlib.contextmanager
def away_from(cpus: set[int]) -> Iterator[None]:
    """Keep this process off the CPUs under test while it has others."""
    before = os.sched_getaffinity(0)
    others = before - cpus
    if others:
        os.sched_setaffinity(0, others)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(0, before)


def ending(returncode: int, name: str, phase: str) -> str:
    """One line for a worker that ended early: what happened, in which phase, what to do."""
    if returncode == -signal.SIGKILL:
        return f"{name}: the measuring process was killed (SIGKILL) {phase}: by somebody, or to free memory"
    if returncode < 0:
        known = returncode in {-s for s in signal.Signals}
        which = signal.Signals(-returncode).name if known else f"signal {-returncode}"
        return f"{name}: crashed with {which} {phase}; nothing was measured, run it under a debugger"
    return f"{name}: ended the measuring process with exit code {returncode} {phase} instead of returning"


ERRORS: Mapping[int, type[QuietError]] = {2: UsageError, 3: Refused, 4: Incomplete}


def run(
    workload: Workload, job: wire.Job, timeout: float, progress: Progress, follower: Follower | None = None
) -> Session:
    """Measure; QuietError, in one line, for anything that goes wrong in the worker. `follower` names the causes."""
    worker = Worker()
    try:
        causes = Causes(follower, job.cpu, worker.process.pid)
        return _converse(worker, workload, job, timeout, progress, causes)
    finally:
        worker.close()


def _ended(process: subprocess.Popen[bytes]) -> int:
    """The exit status of a worker that has closed its pipe: code under test may do that and go on."""
    try:
        return process.wait(timeout=1)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _converse(
    worker: Worker, workload: Workload, job: wire.Job, timeout: float, progress: Progress, causes: Causes
) -> Session:
    trials: list[Trial] = []
    phase = "before it was ready"
    worker.send(wire.encode_job(job))
    while True:
        try:
            message = worker.receive(timeout)
        except TimeoutError:
            raise UsageError(
                f"{workload.name}: no trial ended within {timeout:g} s {phase}; ended it "
                "(an endless loop? else allow more with --timeout)"
            ) from None
        if message is None:
            raise QuietError(ending(_ended(worker.process), workload.name, phase))
        event = message["event"]
        if event == "error":
            raise ERRORS[message["exit_code"]](f"{workload.name}: {message['message']}")
        if event == "done":
            causes.end()
            return _session(message, trials, causes)
        if event == "chunk":
            trials += causes.name([wire.unpack_trial(packed) for packed in message["trials"]])
        phase = (
            f"in trial {len(trials) + 1} or soon after"
            if event == "chunk"
            else "while it warmed up or in its first trials"
        )
        progress("warming up" if event != "chunk" else "measuring", len(trials))
        if event == "chunk":
            causes.resume()
        else:
            causes.begin()
        worker.send(b"go\n")


def _session(message: wire.Message, trials: list[Trial], causes: Causes) -> Session:
    rest = {key: value for key, value in message.items() if key not in ("event", "counter")}
    counter = wire.unpack_counter(message["counter"])
    return Session(counter=counter, trials=tuple(trials), causes=causes.source(), **rest)
