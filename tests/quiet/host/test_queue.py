"""The queue for the isolated CPUs: in order, one at a time, never stale, and no user's claim is trusted."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from quiet.errors import Refused
from quiet.host.host import Host
from quiet.host.queue import QUEUE, Turn, described, holder_above, make_queue, queue
from quiet.host.reader import FLOCK


@pytest.fixture
def host(tmp_path: Path) -> Host:
    found = Host(str(tmp_path))
    make_queue(found)
    return found


def take(host: Host, command: str = "", share: bool = False) -> Turn:
    return Turn(host, os.getpid(), command, share)


def now(turn: Turn) -> bool:
    """Whether it has its turn at once."""
    return turn.wait(lambda line, seconds: False)


@contextmanager
def another_process(host: Host, share: bool = False) -> Iterator[int]:
    """A process that has its turn, or waits for it, until it is killed."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        turn = take(host, "another", share)
        now(turn)
        os.write(write_end, b"x")
        turn.wait(lambda line, seconds: not time.sleep(0.01))
        time.sleep(600)
    os.close(write_end)
    os.read(read_end, 1)
    os.close(read_end)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def test_runs_get_their_turn_in_the_order_of_arrival(host: Host) -> None:
    turns = []
    for number in range(4):
        turns.append(take(host, f"run {number}"))
        time.sleep(0.01)  # the kernel's times of files have steps
    assert [ticket.command for ticket in queue(host)] == [f"run {number}" for number in range(4)]
    for number, turn in enumerate(turns):
        assert [now(each) for each in turns[number:]] == [True] + [False] * (3 - number)
        turn.close()
    assert queue(host) == []


def test_a_waiting_run_sees_who_has_the_cpus_and_how_many_are_ahead(host: Host) -> None:
    first, second, third = (take(host, name) for name in ("first", "second", "third"))
    assert now(first)
    seen: list[str] = []
    assert not third.wait(lambda line, seconds: bool(seen.append(line)))
    assert seen[0].startswith(f"waiting for PID {os.getpid()} (uid {os.geteuid()}: first, for ")
    assert seen[0].endswith(", 2 ahead")
    second.close()
    assert not third.wait(lambda line, seconds: bool(seen.append(line)))
    assert seen[-1].endswith(", 1 ahead")
    assert not third.wait(lambda line, seconds: len(seen) < 5 and not seen.append(line))
    assert [bool(line) for line in seen[2:]] == [True, False, False]  # said again only when it has changed


def test_a_limit_ends_the_wait(host: Host) -> None:
    first = take(host)
    assert now(first)
    assert not take(host).wait(lambda line, seconds: True, limit_s=0)


def test_a_limit_holds_however_many_are_ahead(host: Host) -> None:
    turns = [take(host, str(number)) for number in range(6)]
    seen: list[float] = []
    assert not turns[-1].wait(lambda line, seconds: not (seen.append(seconds) or time.sleep(seconds)), 0.05)
    assert max(seen) <= 0.05


def test_a_run_that_was_killed_holds_nothing(host: Host) -> None:
    with another_process(host) as pid:
        turn = take(host)
        assert [ticket.running for ticket in queue(host)] == [True, False]
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert now(turn)
    take(host)  # the next process removes leftovers of the killed one
    assert len([name for name in host.names(QUEUE) if "-" in name]) == 2


def test_sharing_runs_proceed_together_but_not_with_an_exclusive_one(host: Host) -> None:
    one, two = take(host, share=True), take(host, share=True)
    alone = take(host)
    later = take(host, share=True)
    assert now(one)
    assert now(two)
    assert not now(alone)
    assert not now(later), "it would overtake"
    assert [ticket.running for ticket in queue(host)] == [True, True, False, False]
    one.close()
    assert not now(alone)
    two.close()
    assert now(alone)


def test_a_ticket_with_an_early_number_does_not_overtake_others(host: Host) -> None:
    first = take(host, "first")
    time.sleep(0.01)
    late = take(host, "late")
    with host.place(f"{QUEUE}/{late.name}", follow=False) as here:
        early = f"{0:020}-1"
        os.rename(here, os.path.join(os.path.dirname(here), early))
    late.name = early
    assert [ticket.command for ticket in queue(host)] == ["first", "late"]
    assert now(first)
    assert not now(late)


def test_two_runs_never_proceed_at_once_whatever_the_folder_contains(host: Host) -> None:
    first = take(host, "first")
    assert now(first)
    host.unlink(f"{QUEUE}/{first.name}")  # as an attacker of the same user could
    assert not now(take(host, "second"))


def set_lock(turn: Turn, kind: int) -> None:
    """Lock or unlock a ticket, as its owner can."""
    fcntl.fcntl(turn._fd, fcntl.F_OFD_SETLK, struct.pack(FLOCK, kind, 0, 0, 0, 0))


def test_a_ticket_that_becomes_valid_again_does_not_let_its_owner_in_beside_the_run_on_the_cpus(host: Host) -> None:
    early = take(host, "early")
    time.sleep(0.01)
    with another_process(host) as pid:
        set_lock(early, fcntl.F_UNLCK)  # the other one is first, and takes its turn
        end = time.monotonic() + 60
        while f"FLOCK ADVISORY WRITE {pid} " not in " ".join(Path("/proc/locks").read_text().split()):
            assert time.monotonic() < end
            time.sleep(0.01)
        set_lock(early, fcntl.F_WRLCK)
        assert [ticket.command for ticket in queue(host)] == ["early", "another"]
        assert holder_above(host, os.getpid()) is None


def test_a_process_below_the_run_on_the_cpus_is_part_of_it(host: Host) -> None:
    turn = take(host)
    assert holder_above(host, os.getpid()) is None
    assert now(turn)
    found = holder_above(host, os.getpid())
    assert found
    assert found.name == turn.name


def test_another_process_cannot_keep_a_ticket_valid_after_its_owner(host: Host) -> None:
    turn = take(host)
    with host.place(f"{QUEUE}/{turn.name}", follow=False) as place:
        reader = os.open(place, os.O_RDONLY)
        set_lock(turn, fcntl.F_UNLCK)
        fcntl.fcntl(reader, fcntl.F_OFD_SETLK, struct.pack(FLOCK, fcntl.F_RDLCK, 0, 0, 0, 0))
    assert queue(host) == []
    os.close(reader)


def test_nobody_else_can_open_a_ticket_before_it_is_locked(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[int] = []
    lock = fcntl.fcntl

    def locking(fd: int, command: int, argument: bytes) -> object:
        if command == fcntl.F_OFD_SETLK:
            modes.append(os.fstat(fd).st_mode & 0o777)
        return lock(fd, command, argument)

    monkeypatch.setattr(fcntl, "fcntl", locking)
    take(host)
    assert modes == [0o600]


def test_who_locks_the_turn_without_a_ticket_is_shown_and_waited_for(host: Host) -> None:
    with another_process(host) as pid:
        for ticket in queue(host):
            host.unlink(f"{QUEUE}/{ticket.name}")
        seen: list[str] = []
        assert not take(host).wait(lambda line, seconds: bool(seen.append(line)))
        assert seen[0] == f"waiting for PID {pid} (uid {os.geteuid()}, without a ticket), 1 ahead"
        assert [ticket.running for ticket in queue(host)] == [True, False]


def test_when_others_can_write_to_the_queue_its_turn_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there: list[bool] = []
    change = os.chmod

    def opening(path: str, mode: int) -> None:
        if mode & 0o002:
            there.append(Path(path, "turn").exists())
        change(path, mode)

    monkeypatch.setattr(os, "chmod", opening)
    make_queue(Host(str(tmp_path)))
    assert there == [True]


STRANGE = {"nothing": "", "half": "{", "list": "[]", "null": "null", "types": '{"pid": "x"}', "deep": "[" * 2000}
STRANGE["infinite"] = '{"share": false, "command": "", "uid": 1e999, "pid": 1e999}'


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE)
def test_the_content_of_a_foreign_ticket_is_not_trusted(host: Host, text: str) -> None:
    turn = take(host)
    with host.place(f"{QUEUE}/{turn.name}") as place:
        Path(place).write_text(text)
    (ticket,) = queue(host)
    assert (ticket.pid, ticket.uid, ticket.command, ticket.share) == (0, os.geteuid(), "", False)
    assert described(ticket).startswith("another process (uid ")


@pytest.mark.parametrize("kind", ["folder", "link", "fifo", "unlocked", "name"])
def test_a_file_that_is_not_a_ticket_blocks_no_run(host: Host, kind: str) -> None:
    name = f"{1:020}-1"
    with host.place(QUEUE) as place:
        path = Path(place, name)
        if kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to("turn")
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "unlocked":
            path.write_text("{}")
        else:
            Path(place, "x" * 200).write_text("{}")
    assert queue(host) == []
    assert now(take(host))


def test_a_command_is_shown_in_one_printable_line(host: Host) -> None:
    take(host, "sh -c 'a\nb\x1b]0;title\x07'")
    assert queue(host)[0].command == r"sh -c 'a\nb\x1b]0;title\x07'"


def test_without_the_folder_it_is_refused_with_the_command_that_creates_it(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="create it as root"):
        take(Host(str(tmp_path)))
