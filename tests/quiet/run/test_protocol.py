"""Messages between front and helper: messages arrive as sent, and nothing else is accepted as a message."""

from __future__ import annotations

import os
import socket

import pytest

from quiet.run.options import RunRequest
from quiet.run.protocol import (
    FROM_FRONT,
    CommandDone,
    HelperChannel,
    HelperProtocolError,
    Message,
    Moved,
    RunEnded,
    RunFailure,
    RunReady,
    Start,
    Waiting,
    parse,
)

EVERY_KIND: tuple[Message, ...] = (
    RunRequest(cpus="2-3", wait_s=1.5, command="make -j4"),
    Start(812),
    CommandDone(5),
    Waiting("waiting"),
    RunReady("bench", "2-3", True, 3, 4, ("one", "two")),
    Moved(),
    RunEnded(True, False, 65, (), ("interrupted once",), "{}", 1, 2, 3),
    RunFailure("no", 3),
)
GARBAGE = (
    *(b"", b"{}", b"[]", b"null", b"1", b"{", b"\xff", b'"Start"', b"[" * 5000, b'{"kind": []}', b'{"kind": "Peer"}'),
    *(b'{"kind": "Start"}', b'{"kind": "Start", "pid": "1"}', b'{"kind": "Start", "pid": true}'),
    *(b'{"kind": "Start", "pid": 1.5}', b'{"kind": "Start", "pid": 1, "uid": 0}', b'{"kind": "Start", "pid": null}'),
    *(b'{"kind": "RunRequest", "wait_s": NaN}', b'{"kind": "RunRequest", "linger_s": Infinity}'),
    b'{"kind": "RunRequest", "linger_s": 1' + b"0" * 400 + b"}",
    b'{"kind": "CommandDone", "cpu_ns": 1' + b"0" * 400 + b"}",
    *(b'{"kind": "RunRequest", "share": "yes"}', b'{"kind": "RunRequest", "profile": ["bench"]}'),
    *(b'{"kind": "RunRequest", "__class__": 1}', b'{"kind": "RunFailure", "text": "x", "code": 1e99}'),
)


def pair() -> tuple[HelperChannel, HelperChannel]:
    front, helper = socket.socketpair(socket.AF_UNIX)
    return HelperChannel(front, FROM_FRONT), HelperChannel(helper, FROM_FRONT)


@pytest.mark.parametrize("message", EVERY_KIND, ids=lambda message: type(message).__name__)
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    front, helper = pair()
    front.send(message)
    assert helper.receive(type(message), within_s=60) == message


@pytest.mark.parametrize("line", GARBAGE, ids=lambda line: repr(line[:50]))
def test_anything_but_a_message_is_refused(line: bytes) -> None:
    with pytest.raises(HelperProtocolError):
        parse(line)


def test_a_message_that_is_not_expected_now_is_refused() -> None:
    front, helper = pair()
    front.send(Start(1))
    with pytest.raises(HelperProtocolError, match="sent an unexpected Start"):
        helper.receive(RunRequest, within_s=60)


def test_a_line_without_an_end_is_refused() -> None:
    front, helper = socket.socketpair(socket.AF_UNIX)
    front.setblocking(False)
    front.send(b"x" * (FROM_FRONT + 1))
    with pytest.raises(HelperProtocolError, match="does not end"):
        HelperChannel(helper, FROM_FRONT).receive(RunRequest, within_s=60)


def test_a_dead_and_a_silent_front_are_detected() -> None:
    front, helper = pair()
    front.leave()
    assert helper.receive(CommandDone, within_s=60) is None
    assert helper.closed
    helper.send(Moved())
    assert front.receive(Moved, within_s=60) == Moved()


def test_a_late_message_returns_none_and_the_channel_stays_open() -> None:
    front, helper = pair()
    assert helper.receive(CommandDone, within_s=0) is None
    assert not helper.closed
    front.send(CommandDone())
    assert helper.receive(CommandDone, within_s=60) == CommandDone()


def test_the_peer_is_identified_by_the_kernels_record() -> None:
    front, _ = pair()
    assert front.peer() == (os.getpid(), os.geteuid())
