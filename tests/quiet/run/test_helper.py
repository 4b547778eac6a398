"""The helper of `quiet run` in a tree: a profile that lingers, those who wait, and that the tree is restored."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from quiet.host.host import Host
from quiet.host.queue import Turn, make_queue, queue
from quiet.run import protocol
from quiet.run.guard import Guard
from quiet.run.helper import RunSession
from quiet.run.options import RunRequest
from quiet.run.protocol import (
    FROM_FRONT,
    FROM_HELPER,
    CommandDone,
    HelperChannel,
    Moved,
    Peer,
    RunEnded,
    RunFailure,
    RunReady,
    Start,
)
from tests.quiet.kernels import tree
from tests.trees import machine, plant

PATIENCE_S = 30  # less than a helper waits for another one that restores
INTERVAL = "proc/sys/vm/stat_interval"
PROFILE = '[cpus]\nisolated = "1"\n[knobs]\n"vm.stat_interval" = {}\n'


@pytest.fixture(autouse=True)
def of_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper and its front are root's, which those of a test need not be."""
    found = HelperChannel.peer
    monkeypatch.setattr(HelperChannel, "peer", lambda channel: Peer(found(channel).pid, 0))
    monkeypatch.setattr(os, "chown", lambda path, uid, gid: None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tree(tmp_path / "host", machine(cpus=2) | {INTERVAL: "1", "proc/sys/kernel/osrelease": "6.12.0"})
    make_queue(Host(str(found)))
    return found


@pytest.fixture
def helpers() -> Iterator[list[int]]:
    """The helpers that were started; those that are left at the end are killed."""
    found: list[int] = []
    yield found
    for pid in found:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


class Front:
    """The user's end of a run."""

    def __init__(self, channel: HelperChannel) -> None:
        self.channel = channel

    def ask(self, root: Path, interval: int, linger_s: float = 0) -> None:
        """For a profile with this one setting."""
        profile = root.parent / f"{interval}.toml"
        profile.write_text(PROFILE.format(interval))
        self.channel.send(RunRequest(str(profile), observe=False, linger_s=linger_s, command=f"run {interval}"))

    def run(self, root: Path, look: Callable[[], None] = lambda: None) -> RunEnded:
        """A command that ends at once, and how the run ended. `look` is called while it runs."""
        ready = self.channel.receive(RunReady, protocol.Waiting, within_s=PATIENCE_S)
        while isinstance(ready, protocol.Waiting):
            ready = self.channel.receive(RunReady, protocol.Waiting, within_s=PATIENCE_S)
        assert isinstance(ready, RunReady)
        pid = os.fork()
        if pid == 0:
            signal.pause()
        plant(root, {f"proc/{pid}/status": f"Name: true\nPPid: {os.getpid()}"})
        self.channel.send(Start(pid))
        assert self.channel.receive(Moved, within_s=PATIENCE_S) == Moved()
        look()
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.channel.send(CommandDone(0))
        self.channel.leave()
        ended = self.channel.receive(RunEnded, within_s=PATIENCE_S)
        assert isinstance(ended, RunEnded)
        return ended


def start(root: Path, helpers: list[int]) -> Front:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        ours.close()
        null = os.open(os.devnull, os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        try:
            RunSession(Host(str(root)), HelperChannel(theirs, FROM_FRONT), Peer(os.getppid(), 0)).run()
        finally:
            os._exit(0)
    with contextlib.suppress(OSError):  # it has done so itself
        os.setpgid(pid, pid)
    theirs.close()
    helpers.append(pid)
    return Front(HelperChannel(ours, FROM_HELPER))


def through_the_socket(root: Path) -> Front:
    path = root / "run/quiet/linger.0"
    until(path.exists)
    connection = protocol.connect(str(path))
    assert connection
    return Front(HelperChannel(connection, FROM_HELPER))


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def interval(root: Path) -> str:
    return (root / INTERVAL).read_text().strip()


def test_a_profile_that_lingers_is_there_for_the_next_run(root: Path, helpers: list[int]) -> None:
    front = start(root, helpers)
    front.ask(root, 77, linger_s=60)
    assert front.run(root).stays
    front = through_the_socket(root)
    front.ask(root, 77, linger_s=60)
    assert front.run(root).stays
    assert interval(root) == "77"
    os.kill(helpers[0], signal.SIGTERM)
    until(lambda: interval(root) == "1")


def test_a_run_learns_how_long_the_helper_keeps_the_profile(root: Path, helpers: list[int]) -> None:
    front = start(root, helpers)
    front.ask(root, 77, linger_s=5000)
    assert front.run(root).lingers_s == 3600
    front = through_the_socket(root)
    front.ask(root, 77, linger_s=60)
    assert front.run(root).lingers_s == 3600


def test_a_profile_that_was_edited_while_it_lingers_is_applied_as_it_is_now(root: Path, helpers: list[int]) -> None:
    front = start(root, helpers)
    front.ask(root, 77, linger_s=60)
    assert front.run(root).stays
    file = root.parent / "77.toml"
    file.write_text(PROFILE.format(99))
    front = through_the_socket(root)
    front.channel.send(RunRequest(str(file), observe=False))
    seen: list[str] = []
    assert front.run(root, lambda: seen.append(interval(root))).complete
    assert seen == ["99"]
    os.kill(helpers[0], signal.SIGTERM)
    until(lambda: interval(root) == "1")


def test_a_run_with_another_profile_through_the_same_helper_restores(root: Path, helpers: list[int]) -> None:
    front = start(root, helpers)
    front.ask(root, 77, linger_s=60)
    assert front.run(root).stays
    front = through_the_socket(root)
    front.ask(root, 88)
    ended = front.run(root)
    assert (ended.stays, ended.restored) == (False, 1)
    assert interval(root) == "1"


def test_who_waits_at_a_helper_that_stays_does_not_keep_it_from_ending(root: Path, helpers: list[int]) -> None:
    front = start(root, helpers)
    front.ask(root, 77, linger_s=60)
    assert front.run(root).stays
    turn = Turn(Host(str(root)), 0, "holder")
    assert turn.wait(lambda line, seconds: False)
    first = start(root, helpers)
    first.ask(root, 88)
    until(lambda: len(queue(Host(str(root)))) == 2)
    second = through_the_socket(root)
    second.ask(root, 77)
    until(lambda: len(queue(Host(str(root)))) == 3)
    turn.close()
    assert not first.run(root).stays
    assert not second.run(root).stays
    assert interval(root) == "1"


@pytest.mark.slow
def test_connections_to_a_helper_that_stays_do_not_become_any_number_of_processes(
    root: Path, helpers: list[int]
) -> None:
    front = start(root, helpers)
    front.ask(root, 77, linger_s=60)
    assert front.run(root).stays
    idle = [through_the_socket(root) for _ in range(64)]
    more = through_the_socket(root)
    assert more.channel.receive(RunReady, within_s=10) is None
    assert more.channel.closed
    assert not idle[0].channel.closed


@pytest.mark.parametrize("killed", [False, True])
def test_a_run_that_fails_reports_an_incomplete_restore(root: Path, helpers: list[int], killed: bool) -> None:
    front = start(root, helpers)
    front.ask(root, 77)
    assert isinstance(front.channel.receive(RunReady, within_s=PATIENCE_S), RunReady)
    plant(root, {INTERVAL: "55"})  # a conflict
    if killed:
        os.kill(helpers[0], signal.SIGKILL)
    else:
        front.channel.send(Start(os.getpid()))
    failure = front.channel.receive(RunFailure, within_s=PATIENCE_S)
    assert isinstance(failure, RunFailure)
    assert failure.code == 4
    assert "not restored" in failure.text
    assert "quiet restore" in failure.text


@pytest.mark.parametrize("when", [b"", b"a", b"m"])
def test_a_helper_whose_guard_is_killed_restores(
    root: Path, helpers: list[int], monkeypatch: pytest.MonkeyPatch, when: bytes
) -> None:
    make, note = Guard.__init__, Guard.note

    def kill(guard: Guard) -> None:
        os.kill(guard._pid, signal.SIGKILL)
        os.waitid(os.P_PID, guard._pid, os.WEXITED | os.WNOWAIT)

    def made(guard: Guard, take_over: Callable[[bytes], None]) -> None:
        make(guard, take_over)
        if not when:
            kill(guard)

    def noted(guard: Guard, letter: bytes) -> None:
        note(guard, letter)
        if letter == when:
            kill(guard)

    monkeypatch.setattr(Guard, "__init__", made)
    monkeypatch.setattr(Guard, "note", noted)
    front = start(root, helpers)
    front.ask(root, 77)
    assert front.run(root).complete
    assert interval(root) == "1"


def test_a_helper_that_is_killed_once_the_command_is_moved_leaves_neither_side_waiting(
    root: Path, helpers: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    note = Guard.note

    def killed(guard: Guard, letter: bytes) -> None:
        note(guard, letter)
        if letter == b"m" and os.getpgid(0) == os.getpid():
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Guard, "note", killed)
    front = start(root, helpers)
    front.ask(root, 77)
    assert front.run(root).complete
    assert interval(root) == "1"
