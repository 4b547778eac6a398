"""Exchange messages between the measuring process and its parent: length-prefixed pickled objects, one at a time.

The parent sends a job, then GO or ENOUGH after each message. The worker sends Ready, WARMING..., Settling, lists of
trials, and Done; or the error that ended it. The worker blocks after every message but the last until the parent
answers, so the two never compete for a CPU, even if there is only one.

The measured code runs in the worker and can write to its pipes. load() therefore constructs only plain values and
instances of this protocol's classes, these with their declared types, and raises ProtocolError for everything else.
"""

from __future__ import annotations

import builtins
import collections.abc
import functools
import io
import os
import pickle
import struct
import sys
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from operator import attrgetter
from typing import Any, get_args, get_origin, get_type_hints

from cbench.machine.process import die_with_parent
from cbench.model import PLAIN, ChainTimes, Layout, Trial, TrialCause
from quiet import QuietError, UsageError

GO, ENOUGH, WARMING = "go", "enough", "warming"
_HEAD = struct.Struct("=4sI")
_MARK, _LONGEST = b"cbm1", 1 << 28  # start of a message; maximum length in bytes
_MODULES = frozenset((__name__, "cbench.model", "quiet.errors"))
_CHAIN_TIMES = attrgetter(*(each.name for each in fields(ChainTimes)))
Take = Callable[[int], bytes]
"""Reads this many bytes from a pipe; returns fewer only at the end of the pipe."""


class ProtocolError(Exception):
    """The bytes are not a message of this protocol."""


@dataclass(frozen=True, slots=True)
class Job:
    """The job of a worker.

    `trials`: the maximum number of trials. With calibrated cycles, the maximum is `most`, because some trials may have
    to be omitted. `warmup`: None continues until settled. `rewarm`: the `n` of the untimed call before each trial.
    `events`: None selects events that fit the counter. `enters_kernel`, `own_faults`: as in model.Workload, for these
    parameters.
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
    most: int = 0


@dataclass(frozen=True, slots=True)
class Done:
    """The message after the last trial. `stolen_ms`: the time in ms that the hypervisor took from the CPU, None if
    unknown.

    `ticks_per_second`: the rate of the clock, None if unknown.
    """

    stolen_ms: int | None
    ticks_per_second: float | None = None


def send(pipe: int, message: object) -> None:
    content = pickle.dumps(message)
    data = memoryview(_HEAD.pack(_MARK, len(content)) + content)
    while data:
        data = data[os.write(pipe, data) :]


def receive(take: Take) -> Any:
    """The next message. Raises EOFError at the end of the pipe, ProtocolError for anything that is not a message."""
    head = take(_HEAD.size)
    if not head:
        raise EOFError
    mark, size = _HEAD.unpack(head) if len(head) == _HEAD.size else (b"", 0)
    if mark != _MARK or size > _LONGEST:
        raise ProtocolError
    return load(take(size))


def load(content: bytes) -> Any:
    """The message in these bytes. Raises ProtocolError if they are not a message."""
    try:
        message = _Messages(io.BytesIO(content)).load()
        if all(map(_fits_trial, message)) if type(message) is list else _fits(message):
            return message
    except Exception as error:  # garbage makes pickle raise almost anything
        raise ProtocolError from error
    raise ProtocolError


def _fits(message: object) -> bool:
    """Whether a value of one of the protocol's classes has the declared types. True for values of other types, which
    the receivers check.
    """
    return not is_dataclass(type(message)) or _has_type(message, type(message))


def _fits_trial(trial: Any) -> bool:
    """Check a trial's types without the general _has_type(), because there are many trials."""
    numbers = (trial.value, trial.output, trial.context_switches, trial.page_faults, trial.begin, trial.end)
    return (
        type(trial) is Trial
        and set(map(type, numbers)) == {int}
        and type(trial.migrated) is type(trial.valid) is bool
        and (trial.kernel is None or type(trial.kernel) is int)
        and all(each in ((), None) or _has_type(each, tuple[TrialCause, ...]) for each in (trial.causes, trial.traced))
        and all(_is_counts(each) for each in (trial.interrupts, trial.counts))
        and (trial.chains is None or _is_chains(trial.chains))
    )


def _is_chains(chains: object) -> bool:
    return type(chains) is ChainTimes and set(map(type, _CHAIN_TIMES(chains))) == {int}


def _is_counts(counts: object) -> bool:
    return type(counts) is dict and set(map(type, counts)) <= {str} and set(map(type, counts.values())) <= {int}


def _has_type(value: object, hint: Any) -> bool:
    """Whether a value has the type that a class of this protocol declares for it."""
    if isinstance(hint, type) and is_dataclass(hint):
        hints = _hints(hint)
        return type(value) is hint and all(_has_type(getattr(value, name), hints[name]) for name in hints)
    arguments = get_args(hint)
    match get_origin(hint):
        case types.UnionType:
            return any(_has_type(value, each) for each in arguments)
        case builtins.tuple:
            return type(value) is tuple and all(_has_type(each, arguments[0]) for each in value)
        case collections.abc.Mapping:
            key, content = arguments
            return type(value) is dict and all(_has_type(k, key) and _has_type(v, content) for k, v in value.items())
    return type(value) is hint or (value is None and hint is type(None))


@functools.cache
def _hints(of: type) -> dict[str, type]:
    return get_type_hints(of)


class _Messages(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> type:
        """The class with this name, only from the protocol's own modules, so that a message cannot call anything with
        an effect. Raises ProtocolError for any other name.
        """
        found = getattr(sys.modules[module], name) if module in _MODULES else None
        if not isinstance(found, type) or found.__module__ != module:
            raise ProtocolError
        return found


class Channel:
    """The child's ends of the two pipes."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._process = os.getpid()
        self.incoming, self._outgoing = os.fdopen(incoming, "rb"), outgoing

    def receive(self) -> Any:
        try:
            return receive(self.incoming.read)
        except (EOFError, ProtocolError):
            sys.exit(1)  # the parent has ended

    def send(self, message: object) -> None:
        if os.getpid() != self._process:
            os._exit(0)  # a forked child of the measured code must not send messages
        send(self._outgoing, message)

    def ask(self, message: object) -> bool:
        """Send a message and block until the parent answers; returns whether the parent wants more trials."""
        self.send(message)
        return bool(self.receive() != ENOUGH)


def serve(work: Callable[[Channel], None]) -> None:
    """Run the work of a child that runner.Worker has started. The child ends with its parent, and reports its errors to
    the parent.
    """
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
