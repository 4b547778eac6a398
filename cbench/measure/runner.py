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
from contextvars import ContextVar

from cbench.machine.process import addresses
from cbench.measure import protocol
from cbench.measure.causes import Causes
from cbench.model import PLAIN, Enough, Keeper, Layout, Ready, Session, Settling, Trial, Workload
from quiet import Follower, Incomplete, QuietError, Refused, UsageError

Progress = Callable[[str, int], None]

FIRST = "while it warmed up or in its first trials (those of 0.2 s are stored together)"


KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
"""What of the environment the worker sees: its size moves the stack, so it is kept small and fixed."""


PADDING = "CBENCH_PADDING"
_VARIABLES: ContextVar[Mapping[str, str]] = ContextVar("variables")


@contextlib.contextmanager
def variables(given: Mapping[str, str]) -> Iterator[None]:
    """Processes that measure see these too, meanwhile."""
    token = _VARIABLES.set(given)
    try:
        yield
    finally:
        _VARIABLES.reset(token)


class Worker:
    """A running `cbench.measure.worker` in a session of its own, with the parent's ends of its pipes."""

    def __init__(self, layout: Layout = PLAIN) -> None:
        to_worker, self._out = os.pipe()
        self._in, from_worker = os.pipe()
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= _VARIABLES.get({})
        self._rest = b""
        ends = [str(to_worker), str(from_worker), str(os.getpid())]
        environment |= {PADDING: "x" * layout.environment} if layout.environment else {}
        with addresses(fixed=not layout.aslr):
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "cbench.measure.worker", *ends],
                pass_fds=(to_worker, from_worker),
                stdin=subprocess.DEVNULL,
                stdout=2,  # user code that prints must not end up in the results
                env={**environment, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        self._end = os.pidfd_open(self.process.pid)
        os.close(to_worker)
        os.close(from_worker)

    def send(self, data: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # then the next receive() sees the end
            os.write(self._out, data)

    def receive(self, timeout: float) -> protocol.Message | None:
        """The next message, None when the worker has ended; TimeoutError after `timeout` seconds."""
        deadline = time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._in, select.POLLIN)
        poll.register(self._end, select.POLLIN)  # a child that it left behind may hold the pipe open
        while b"\n" not in self._rest:
            left = deadline - time.monotonic()
            ready = [file for file, _ in poll.poll(left * 1000)] if left > 0 else []
            if not ready:
                raise TimeoutError
            if self._in not in ready:
                return None
            data = os.read(self._in, 1 << 20)
            if not data:
                return None
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return protocol.decode(line)

    def close(self) -> None:
        """End the worker and whatever it started."""
        self.ended(patience=0)
        for file in (self._in, self._out, self._end):
            os.close(file)

    def ended(self, patience: float) -> int:
        """The exit status; a worker that has not ended after `patience` seconds is killed, its children always are.

        Its number is still its own then, for it has not been waited for.
        """
        if self.process.returncode is None:
            select.select([self._end], [], [], patience)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()


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
        return f"{name}: crashed with {which} {phase}: run it under a debugger"
    return f"{name}: ended the measuring process with exit code {returncode} {phase} instead of returning"


ERRORS: Mapping[int, type[QuietError]] = {2: UsageError, 3: Refused, 4: Incomplete}


def run(
    workload: Workload,
    job: protocol.Job,
    timeout: float,
    progress: Progress,
    follower: Follower | None = None,
    *,
    keeper: Keeper | None = None,
    enough: Enough | None = None,
) -> Session:
    """Measure; QuietError, in one line, for anything that goes wrong in the worker.

    `follower` names the causes; `keeper` gets every chunk of trials at once; `enough` ends the trials early.
    """
    worker = Worker(job.layout)
    try:
        causes = Causes(follower, job.cpu, worker.process.pid, bool(job.own_faults))
        return Conversation(worker, workload, job, causes, keeper).hold(timeout, progress, enough)
    finally:
        worker.close()


class Conversation:
    """What a worker says, until it is done."""

    def __init__(
        self, worker: Worker, workload: Workload, job: protocol.Job, causes: Causes, keeper: Keeper | None
    ) -> None:
        self._worker, self._workload, self._job = worker, workload, job
        self._causes, self._keeper = causes, keeper
        self._trials: list[Trial] = []
        self._ready: Ready | None = None
        self._settling = Settling()

    def hold(self, timeout: float, progress: Progress, enough: Enough | None) -> Session:
        self._worker.send(protocol.encode_job(self._job))
        phase = "before it was ready"
        while True:
            message = self._next(timeout, phase)
            event = message["event"]
            if event == "done":
                return self._done(message)
            if event == "chunk":
                self._take(message)
            elif event == "ready":
                self._ready = protocol.unpack_ready(message)
            elif event == "settled":
                self._settled(message)
            done = len(self._trials)
            measuring = event == "chunk"
            phase = f"in trial {done + 1} or soon after" if measuring else FIRST
            progress("measuring" if measuring else "warming up", done)
            if measuring and enough and self._ready and enough(self._trials, self._ready.counter):
                self._worker.send(protocol.ENOUGH)
                continue
            if measuring:
                self._causes.resume()
            elif event == "settled":
                self._causes.begin()
            self._worker.send(protocol.GO)

    def _next(self, timeout: float, phase: str) -> protocol.Message:
        name = self._workload.name
        try:
            message = self._worker.receive(timeout)
        except TimeoutError:
            raise UsageError(
                f"{name}: no trial ended within {timeout:g} s {phase}; ended it "
                "(an endless loop? else allow more with --timeout)"
            ) from None
        if message is None:
            raise QuietError(ending(self._worker.ended(patience=1), name, phase))
        if message["event"] == "error":
            raise ERRORS[message["exit_code"]](f"{name}: {message['message']}")
        return message

    def _settled(self, message: protocol.Message) -> None:
        self._settling = protocol.unpack_settling(message)
        if self._keeper and self._ready:
            self._keeper.begin(self._ready, self._settling)

    def _take(self, message: protocol.Message) -> None:
        trials = self._causes.name([protocol.unpack_trial(packed) for packed in message["trials"]])
        self._trials += trials
        if self._keeper:
            self._keeper.add(trials)

    def _done(self, message: protocol.Message) -> Session:
        self._causes.end()
        assert self._ready is not None
        session = Session(
            counter=self._ready.counter,
            locked=self._ready.locked,
            addresses=self._ready.addresses,
            pages=self._ready.pages,
            interrupts_from=self._ready.interrupts_from,
            trials=tuple(self._trials),
            settling=self._settling,
            stolen_ms=message["stolen_ms"],
            causes=self._causes.source(),
            layout=self._job.layout,
            params=dict(self._job.params),
        )
        if self._keeper:
            self._keeper.finish(session)
        return session
