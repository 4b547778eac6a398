"""Start the measuring process, receive its chunks of trials, and turn its failures into errors."""

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
from typing import Any

from cbench.machine.process import addresses, affinity
from cbench.measure import protocol
from cbench.measure.causes import Causes
from cbench.model import PLAIN, Enough, Keeper, Layout, Ready, Session, Settling, Trial
from cbench.results import extended
from cbench.stats import chains
from cbench.workloads.user_code import PROTOTYPE, is_user_code
from quiet import Follower, QuietError, UsageError

Progress = Callable[[str, int], None]

FIRST = "during the warm-up or the first 0.2 s of trials"


KEPT = ("PATH", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONPATH", "VIRTUAL_ENV", "TMPDIR")
"""The environment variables that the worker inherits: few and fixed, because their size moves the stack."""


DISTURBED = "the measured code wrote to a pipe of the measuring process; it may write only to its own file descriptors"

PADDING = "CBENCH_PADDING"
_VARIABLES: ContextVar[Mapping[str, str]] = ContextVar("variables")


@contextlib.contextmanager
def variables(given: Mapping[str, str]) -> Iterator[None]:
    """A context in which measuring processes get these additional environment variables."""
    token = _VARIABLES.set(given)
    try:
        yield
    finally:
        _VARIABLES.reset(token)


class Worker:
    """A child process in a separate session that runs one of cbench's modules by protocol.serve()."""

    def __init__(self, module: str, layout: Layout = PLAIN) -> None:
        to_worker, self._out = os.pipe()
        self._in, from_worker = os.pipe()
        environment = {name: os.environ[name] for name in KEPT if name in os.environ}
        environment |= _VARIABLES.get({})
        environment |= {PADDING: "x" * layout.environment} if layout.environment else {}
        with addresses(fixed=not layout.aslr):
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", module, str(to_worker), str(from_worker), str(os.getpid())],
                pass_fds=(to_worker, from_worker),
                stdin=subprocess.DEVNULL,
                stdout=2,  # user code that prints must not end up in the results
                env={**environment, "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        self._end = os.pidfd_open(self.process.pid)
        os.close(to_worker)
        os.close(from_worker)

    def send(self, message: object) -> None:
        with contextlib.suppress(BrokenPipeError):  # the next receive() detects the end
            protocol.send(self._out, message)

    def receive(self, timeout: float, name: str) -> Any:
        """The child's next message, None if the child has ended.

        Raises TimeoutError after `timeout` seconds, QuietError for data that is not a message, and, prefixed with
        `name`, the error that ended the child.
        """
        until = time.monotonic() + timeout

        def take(size: int) -> bytes:
            content = bytearray()
            while len(content) < size:
                # a process that the child left behind may hold the pipe open
                ready, _, _ = select.select([self._in, self._end], [], [], max(until - time.monotonic(), 0))
                if not ready:
                    raise TimeoutError
                more = os.read(self._in, size - len(content)) if self._in in ready else b""
                if not more:
                    break
                content += more
            return bytes(content)

        try:
            message = protocol.receive(take)
        except EOFError:
            return None
        except protocol.ProtocolError:
            raise QuietError(f"{name}: {DISTURBED}") from None
        if isinstance(message, QuietError):
            raise type(message)(f"{name}: {message}")
        return message

    def close(self) -> None:
        """End the child and its process group."""
        self.ended(patience=0)
        os.close(self._in)
        os.close(self._out)
        os.close(self._end)

    def ended(self, patience: float) -> int:
        """The child's exit status. A child that has not exited after `patience` seconds is killed; the rest of its
        process group is always killed.

        Signaling the process group is safe: its ID is not reused before the child is reaped, at the end of this method.
        """
        if self.process.returncode is None:
            select.select([self._end], [], [], patience)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        return self.process.wait()


def away_from(cpus: set[int], others_needed: int = 1) -> contextlib.AbstractContextManager[None]:
    """A context in which this process stays off these CPUs, provided that it may run on at least `others_needed` other
    CPUs.
    """
    others = os.sched_getaffinity(0) - cpus
    return affinity(others) if len(others) >= others_needed else contextlib.nullcontext()


def ending(returncode: int, name: str, phase: str) -> str:
    """A message about a worker that ended early, in one line: the event, the phase of the measurement, and the possible
    cause or the remedy if there is one.
    """
    if returncode == -signal.SIGKILL:
        return f"{name}: the measuring process was killed (SIGKILL) {phase}: by another program, or to free memory"
    if returncode < 0:
        known = returncode in {-s for s in signal.Signals}
        which = signal.Signals(-returncode).name if known else f"signal {-returncode}"
        hint = f" (it must be `{PROTOTYPE}`, and state is NULL)" if is_user_code(name) else ""
        return f"{name}: crashed with {which} {phase}: run it under a debugger{hint}"
    return f"{name}: ended the measuring process with exit code {returncode} {phase} instead of returning"


def run(
    name: str,
    job: protocol.Job,
    timeout: float,
    progress: Progress,
    follower: Follower | None = None,
    keeper: Keeper | None = None,
    enough: Enough | None = None,
) -> Session:
    """Measure one process's trials. Raises QuietError, with a one-line message, for any failure of the worker.

    `name`: the workload's name. `timeout`: seconds without a message of the worker. `follower` names the causes;
    `keeper` receives each chunk of trials immediately; `enough` may end the measurement early.
    """
    with contextlib.closing(Worker("cbench.measure.worker", job.layout)) as worker:
        causes = Causes(follower, job.cpu, worker.process.pid, bool(job.own_faults))
        worker.send(job)
        message = _next(worker, name, timeout, "before it was ready")
        ready, settling, trials, usable = message, Settling(), list[Trial](), 0
        if not isinstance(ready, Ready):
            raise QuietError(f"{name}: {DISTURBED}")
        while not isinstance(message, protocol.Done):
            measuring, answer = isinstance(message, list), protocol.GO
            if isinstance(message, Settling):
                settling = message
                if keeper:
                    keeper.begin(ready, settling)
            elif measuring:
                chunk = causes.name(message)
                trials += chunk
                usable += sum(map(chains.kept, chains.marked(chunk, ready.counter.calibration)))
                if keeper:
                    keeper.add(chunk)
            progress("measuring" if measuring else "warming up", usable)
            if measuring and enough and enough(trials, ready.counter):
                answer = protocol.ENOUGH
            elif measuring:
                causes.resume()
            elif isinstance(message, Settling):
                causes.begin()
            worker.send(answer)
            message = _next(worker, name, timeout, f"in trial {len(trials) + 1} or soon after" if measuring else FIRST)
        causes.end()
    session = extended(
        Session,
        ready,
        trials=tuple(chains.marked(trials, ready.counter.calibration)),
        settling=settling,
        stolen_ms=message.stolen_ms,
        ticks_per_second=message.ticks_per_second,
        causes=causes.source(),
        layout=job.layout,
        params=dict(job.params),
    )
    if keeper:
        keeper.finish(session)
    return session


def _next(worker: Worker, name: str, timeout: float, phase: str) -> Any:
    try:
        message = worker.receive(timeout, name)
    except TimeoutError:
        raise UsageError(
            f"{name}: no trial ended within {timeout:g} s {phase}, so the process was killed (an endless loop? If not, "
            "allow more with --timeout)"
        ) from None
    if message is None:
        raise QuietError(ending(worker.ended(patience=1), name, phase))
    return message
