"""Measured code that writes to the worker's pipes, closes them or forks: one line, in time, and nothing is executed."""

from __future__ import annotations

import io
import os
import pickle
import random
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from cbench.measure import protocol
from cbench.model import ChainTimes, Counter, Ready, Settling, Trial, TrialCause
from quiet.errors import Refused
from tests.cbench.running import cbench, error_line

HEAD = """
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>
static void everywhere(const char *data, size_t size) {
	for (int fd = 3; fd < 40; fd++) if (write(fd, data, size) < 0) {}
}
"""
DISTURBED = "run: the measured code wrote to a pipe of the measuring process"
MESSAGES = [
    *(Ready(Counter("tsc", "ticks", True, "a clock", left_out={"x": "y"})), Settling((1, 2), (3,), True)),
    *(
        [Trial(1, 2, interrupts={"LOC": 1}, chains=ChainTimes(1, 2, 3, 4, 5, 6))] * 2,
        protocol.Done(None),
        protocol.WARMING,
        (1, 0.5, 0.25),
    ),
]


def through(data: bytes) -> object:
    return protocol.receive(io.BytesIO(data).read)


def framed(content: bytes) -> bytes:
    return struct.pack("=4sI", b"cbm1", len(content)) + content


@pytest.mark.parametrize("message", MESSAGES)
def test_messages_arrive_as_they_were(message: object) -> None:
    reading, writing = os.pipe()
    protocol.send(writing, message)
    with os.fdopen(reading, "rb") as pipe:
        assert protocol.receive(pipe.read) == message


def test_an_error_arrives_with_its_exit_code() -> None:
    error = protocol.load(pickle.dumps(Refused("no")))
    assert isinstance(error, Refused)
    assert str(error) == "no"


class Evil:
    def __init__(self, call: Callable[..., object], *arguments: object) -> None:
        self.call, self.arguments = call, arguments

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return self.call, self.arguments


@pytest.mark.parametrize("call", [os.mkdir, exec, getattr, protocol.send, protocol.load, pickle.loads])
def test_a_message_that_would_call_code_is_refused_and_calls_nothing(call: Callable[..., object]) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.load(pickle.dumps(Evil(call, "x")))


@pytest.mark.parametrize("name", [b"os\nmkdir", b"cbench.measure.protocol\nos.mkdir", b"cbench.model\ndataclass"])
def test_names_cannot_refer_to_other_code(name: bytes) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.load(b"\x80\x04c" + name + b"\n(S'x'\ntR.")


def test_garbage_is_not_a_message_whatever_it_is() -> None:
    draw = random.Random(1)
    whole = framed(pickle.dumps(MESSAGES[0]))
    for data in (b"x", b"garbage\n", b"\xff" * 8, framed(b""), framed(b"\x80\x04\x8e" + b"\xff" * 8), whole[:-1]):
        with pytest.raises(protocol.ProtocolError):
            through(data)
    for _ in range(2000):
        with pytest.raises(protocol.ProtocolError):
            through(framed(draw.randbytes(draw.randrange(100)) + b"\xff"))


COUNTER = Counter("tsc", "ticks", True, "a clock")
WRONG: list[object] = [
    *(Ready(5), Ready(COUNTER, 5), Ready(replace(COUNTER, why=None)), Ready(replace(COUNTER, others=(1,)))),  # type: ignore[arg-type]
    *(Ready(replace(COUNTER, left_out={"x": 1})), Settling((1.5,)), Settling(settled=1), protocol.Done("1")),  # type: ignore[arg-type,dict-item]
    *([5], [protocol.WARMING, Trial(1, 2)], [Trial("1", 2)], [Trial(1, 2, causes=("x",))], [Trial(1, 2, kernel=0.5)]),  # type: ignore[arg-type]
    *([Trial(1, 2, traced=(1,))], [Trial(1, 2, migrated=1)], [Trial(1, 2, interrupts={"LOC": "1"})]),  # type: ignore[arg-type,dict-item]
    *([Trial(1, 2, chains=(1, 2, 3))], [Trial(1, 2, chains=ChainTimes(1, 2, 3, 4, 5, None))]),  # type: ignore[arg-type]
    *([Trial(1, 2, causes=(TrialCause(1),))], [Trial(1, 2, counts=None)], [Trial(1, 2), Settling()]),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("message", WRONG)
def test_a_message_with_wrong_types_is_rejected(message: object) -> None:
    with pytest.raises(protocol.ProtocolError):
        protocol.load(pickle.dumps(message))


def test_an_incomplete_message_is_rejected() -> None:
    state = pickle.dumps(Settling((1,), (2,), True)).replace(b"\x88e", b"e")  # the third value, NEWTRUE
    assert state != pickle.dumps(Settling((1,), (2,), True))
    with pytest.raises(protocol.ProtocolError):
        protocol.load(state)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('everywhere("garbage\\n", 8);', DISTURBED),
        ('everywhere("[1]\\n", 4);', DISTURBED),
        ('everywhere("\\xff", 1); for (;;) ;', "no trial ended within 1 s"),
        ('everywhere("cbm1\\xff\\xff\\xff\\x00", 8); for (;;) ;', "no trial ended within 1 s"),
        ('everywhere("cbm1\\xff\\xff\\xff\\xff", 8);', DISTURBED),
        ("for (int fd = 3; fd < 40; fd++) close(fd);", "ended the measuring process with exit code 1"),
    ],
)
def test_code_that_writes_to_or_closes_the_pipes_is_reported_in_one_line(body: str, why: str, tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text(f"{HEAD}uint64_t run(uint64_t n) {{ {body} return n; }}\n")
    begun, limit = time.monotonic(), "1" if "1 s" in why else "100"  # Python's start counts too
    done = cbench("run", f"{source}:run", "--quick", "--trials", "3", "--warmup", "0", "--no-trace", "--timeout", limit)
    assert time.monotonic() - begun < 60
    assert done.returncode == 2
    assert why in error_line(done)


@pytest.mark.slow
def test_a_child_left_behind_by_measured_code_does_not_delay_the_command(tmp_path: Path) -> None:
    source = tmp_path / "a.c"
    source.write_text(
        f"{HEAD}uint64_t run(uint64_t n) {{ if (!fork()) {{ setsid(); sleep(5); _exit(0); }} return n; }}"
    )
    done = cbench("run", f"{source}:run", "--quick", "--trials", "2", "--warmup", "0", "--no-trace")
    assert done.returncode == 0, done.stderr
