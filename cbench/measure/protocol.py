"""What the measuring process and its parent say to each other: one pickled object at a time.

Parent: a job, then GO or ENOUGH after each message. Worker: Ready, WARMING..., Settling, lists of trials, Done; or the
error that ended it. The worker blocks after every message until the parent answers, so the two never run at once, not
even on a single CPU.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

from cbench.machine.process import die_with_parent
from cbench.model import PLAIN, Layout
from quiet import QuietError, UsageError

GO, ENOUGH, WARMING = "go", "enough", "warming"


@dataclass(frozen=True, slots=True)
class Job:
    """What the worker is to measure.

    `trials`: at most so many. `warmup` None: until settled. `rewarm`: n of the untimed call. `events` None: what
    suits the counter.
    """

    function: str
    library: str
    params: Mapping[str, int]
    rewarm: int
    cpu: int
    trials: int
    warmup: int | None
    counter: str
    events: tuple[str, ...] | None = None
    enters_kernel: bool | None = False
    own_faults: int = 0
    layout: Layout = PLAIN


@dataclass(frozen=True, slots=True)
class Done:
    """There are no more trials. `stolen_ms`: for how long the hypervisor kept the CPU, None where unknown."""

    stolen_ms: int | None


def send(pipe: int, message: object) -> None:
    data = memoryview(pickle.dumps(message))
    while data:
        data = data[os.write(pipe, data) :]


def receive(pipe: BinaryIO) -> Any:
    """The next message. Both ends are cbench's own, of one user. Raises EOFError."""
    return pickle.load(pipe)  # noqa: S301


class Channel:
    """The child's ends of the two pipes."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._process = os.getpid()
        self.incoming, self._outgoing = os.fdopen(incoming, "rb"), outgoing

    def receive(self) -> Any:
        try:
            return receive(self.incoming)
        except EOFError:
            sys.exit(1)  # the parent is gone

    def send(self, message: object) -> None:
        if os.getpid() != self._process:
            os._exit(0)  # a copy that the measured code has made of this process: it has nothing to say
        send(self._outgoing, message)

    def ask(self, message: object) -> bool:
        """Send, then block until the parent has done its part; whether it wants more."""
        self.send(message)
        return bool(self.receive() != ENOUGH)


def serve(work: Callable[[Channel], None]) -> None:
    """The life of a child that runner.Worker has started: it ends with its parent, and reports its errors to it."""
    incoming, outgoing, parent = (int(text) for text in sys.argv[1:4])
    if not die_with_parent(parent):
        sys.exit(1)
    channel = Channel(incoming, outgoing)
    try:
        work(channel)
    except (QuietError, OSError, MemoryError) as error:
        known = error if isinstance(error, QuietError) else UsageError(f"{type(error).__name__}: {error}")
        try:
            channel.send(known)
        except OSError:  # the measured code has closed the pipes
            os._exit(1)
