"""Run the front of `quiet run`: the caller's own process, with its environment, directory and terminal.

The front starts the helper, forks the command, forwards signals, and exits with the command's exit code.
"""

from __future__ import annotations

import os

from quiet.errors import Incomplete, QuietError, Refused
from quiet.run import child
from quiet.run.child import CommandSignals
from quiet.run.options import NamedTuple, RunRequest
from quiet.run.protocol import (
    CommandDone,
    HelperChannel,
    Message,
    Moved,
    RunEnded,
    RunFailure,
    RunReady,
    Start,
    Waiting,
    lingering_helper,
)

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from quiet.host.identity import Identity

_SHOWN = 200  # maximum number of characters of the command shown to other users


class RunEvents(NamedTuple):
    """The handlers of the helper's messages."""

    waiting: Callable[[Waiting], None]
    ready: Callable[[RunReady], None]
    ended: Callable[[RunEnded], None]


class _FrontState:
    """The channel to the helper, for a signal that arrives before the command is started."""

    channel: HelperChannel | None = None

    def leave(self) -> None:
        if self.channel:
            self.channel.leave()


def run(
    options: RunRequest, as_user: str | None, command: Sequence[str], events: RunEvents
) -> tuple[int, RunEnded | None]:
    """Run a command under a profile.

    Returns the command's exit code, and the helper's report (None if a signal arrived before the apply). The code is
    128 + N for signal N, even if the signal arrived before the command was started. Raises UsageError if there is no
    such command, Refused if nothing was applied, Incomplete if the helper ended before it restored the host, and
    QuietError for a failure that the helper reports.
    """
    program = child.find(command[0])
    user = _user(as_user)
    options = options._replace(command=" ".join(command)[:_SHOWN])
    state = _FrontState()
    with CommandSignals(state.leave) as signals:
        first = _first(state, options, signals)
        if first is None:
            return 128 + signals.pending, None
        channel = state.channel
        assert channel
        message = _until_ready(channel, first, events)
        if message is None:
            if signals.pending:
                return 128 + signals.pending, None
            raise Refused("the helper ended before it applied anything; nothing was changed")
        events.ready(message)
        code = _command(channel, message, program, command, user, signals)
        ended = channel.receive(RunEnded, RunFailure)
        if isinstance(ended, RunFailure):
            raise _error(ended)
        if not isinstance(ended, RunEnded):
            raise Incomplete("the helper ended before it restored the host; run `sudo quiet restore`")
        events.ended(ended)
    return code, ended


def _user(as_user: str | None) -> Identity | None:
    """The user that the command runs as; None: the current user. Raises QuietError for a wrong `as_user`."""
    if as_user is None and os.geteuid() != 0:
        return None
    from quiet.host import identity

    return identity.wanted(as_user)


def _first(state: _FrontState, options: RunRequest, signals: CommandSignals) -> Message | None:
    """The first answer of a helper; None if a signal arrived first. Raises Refused if no helper answers."""
    for channel, started in _helpers():
        state.channel = channel
        channel.send(options)
        if signals.pending:
            channel.leave()
        if answer := channel.receive(Waiting, RunReady, RunFailure):
            return answer
        if signals.pending:
            return None
        if started:
            raise Refused("the helper was killed before it applied anything; nothing was changed")
        channel.close()
        state.channel = None
    from quiet.run import starter

    raise starter.refusal()


def _helpers() -> Iterator[tuple[HelperChannel, bool]]:
    """Yield a channel to each possible helper, the lingering one first, and True if the helper certainly started."""
    if channel := lingering_helper(os.geteuid()):
        yield channel, False
    from quiet.run import starter  # not loaded for a lingering profile, so that such a run starts fast

    for command in starter.attempts():
        yield starter.start(command)


def _until_ready(channel: HelperChannel, message: Message | None, events: RunEvents) -> RunReady | None:
    while isinstance(message, Waiting):
        events.waiting(message)
        message = channel.receive(Waiting, RunReady, RunFailure)
    if isinstance(message, RunFailure):
        raise _error(message)
    return message if isinstance(message, RunReady) else None


def _command(
    channel: HelperChannel,
    ready: RunReady,
    program: str,
    command: Sequence[str],
    user: Identity | None,
    signals: CommandSignals,
) -> int:
    """Run the command on its CPUs and return its exit code."""
    running = child.start(program, command, user, signals)
    if running is None:
        channel.send(CommandDone())
        channel.leave()
        return 128 + signals.pending
    channel.send(Start(running.pid))
    moved = channel.receive(Moved, RunFailure)
    if isinstance(moved, Moved):
        running.begin(ready.fixed)
    code = running.wait()
    if moved is None:
        raise Incomplete("the helper ended before the command could begin; run `sudo quiet restore`")
    channel.send(running.done)
    channel.leave()
    if isinstance(moved, RunFailure):
        raise _error(moved)
    return code


def _error(failure: RunFailure) -> QuietError:
    """The error that the helper reported as this failure."""
    error = QuietError(failure.text)
    error.exit_code = failure.code
    return error
