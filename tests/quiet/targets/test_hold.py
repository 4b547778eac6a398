"""A device that forgets when it is closed: held by a process of its own, which lives exactly as long as the profile.

The device is a pipe here: it shows who writes to it, and whether any process still has it open.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from quiet.errors import Refused
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.settings.apply import apply
from quiet.settings.profile import Profile, check
from quiet.settings.restore import restore
from quiet.settings.verify import plan_now
from tests.quiet.kernels import killed
from tests.trees import CPU, machine, plant

DEVICE, TARGET = "cpu_dma_latency", "held:cpu_dma_latency"


def wish(limit: int | str = 7) -> Profile:
    knobs: dict[str, object] = {"idle.latency": limit, "vm.stat_interval": "quiet"}
    return check({"cpus": {"isolated": "1"}, "knobs": knobs}, "profile held", "held")


class Tree:
    """A machine with the device; `reader` is the pipe's other end."""

    def __init__(self, root: Path) -> None:
        states = {f"{CPU}/cpu1/cpuidle/state1/{name}": text for name, text in (("name", "C1"), ("latency", "2"))}
        files = machine(cpus=2, cgroup=0) | states | {"dev/": "", "proc/sys/vm/stat_interval": "1"}
        plant(root, {**files, f"sys/class/misc/{DEVICE}/dev": "10:126"})
        os.mkfifo(root / "dev" / DEVICE)
        self.reader = os.open(root / "dev" / DEVICE, os.O_RDONLY | os.O_NONBLOCK)
        self.host = Host(str(root))

    def holders(self) -> list[int]:
        return self.host._holders(DEVICE)

    def heard(self) -> list[int]:
        """The numbers that were written since it was last asked."""
        try:
            return [number for (number,) in struct.iter_unpack("i", os.read(self.reader, 1024))]
        except BlockingIOError:
            return []

    def is_open(self) -> bool:
        self.heard()
        try:
            return os.read(self.reader, 1) != b""
        except BlockingIOError:
            return True

    def drift(self) -> list[str]:
        return [change.target for change in plan_now(self.host, wish(), None)[0].changes]


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[Tree]:
    made = Tree(tmp_path)
    yield made
    made.host.release(DEVICE)
    os.close(made.reader)


def test_the_device_is_open_from_apply_to_restore_with_the_number_in_it(tree: Tree) -> None:
    assert not apply(tree.host, wish()).failures
    assert tree.heard() == [7]
    assert tree.is_open()
    assert tree.drift() == []
    assert restore(tree.host).complete
    assert not tree.is_open()
    assert tree.holders() == []
    assert os.listdir(tree.host.root + "/run/quiet") == ["lock"]


def test_a_second_apply_leaves_the_holder_alone(tree: Tree) -> None:
    apply(tree.host, wish())
    first = tree.holders()
    assert apply(tree.host, wish()).changes == ()
    assert tree.holders() == first
    assert len(first) == 1


def test_a_killed_holder_is_drift_and_the_next_apply_starts_another(tree: Tree) -> None:
    apply(tree.host, wish())
    (first,) = tree.holders()
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)
    assert not tree.is_open()
    assert tree.drift() == [TARGET]
    apply(tree.host, wish())
    assert tree.drift() == []
    assert tree.holders() != [first]
    assert restore(tree.host).complete
    assert tree.holders() == []


def test_restore_after_the_holder_was_killed_succeeds(tree: Tree) -> None:
    apply(tree.host, wish())
    (holder,) = tree.holders()
    os.kill(holder, signal.SIGKILL)
    os.waitpid(holder, 0)
    outcome = restore(tree.host)
    assert outcome.complete
    assert outcome.conflicts == ()


def test_a_record_without_its_process_is_ignored(tree: Tree) -> None:
    plant(Path(tree.host.root), {f"run/quiet/held.{DEVICE}": "7"})
    assert tree.host.held(DEVICE) is None
    apply(tree.host, wish())
    assert tree.host.held(DEVICE) == "7"


def test_a_lost_journal_does_not_lead_to_two_holders(tree: Tree) -> None:
    apply(tree.host, wish())
    for name in os.listdir(tree.host.root + "/run/quiet"):
        os.unlink(f"{tree.host.root}/run/quiet/{name}")
    apply(tree.host, wish(9))
    assert len(tree.holders()) == 1
    assert tree.heard() == [7, 9]


def wait_until_asleep(pid: int) -> None:
    deadline = time.monotonic() + 60
    while (state := Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]) != "S":
        assert time.monotonic() < deadline, state
        time.sleep(0.001)


def test_the_holder_keeps_nothing_of_its_caller(tree: Tree, tmp_path: Path) -> None:
    mine = os.open(tmp_path / "mine", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(mine, True)  # as with `flock FILE quiet apply`
    fcntl.flock(mine, fcntl.LOCK_EX)
    apply(tree.host, wish())
    os.close(mine)
    (holder,) = tree.holders()
    again = os.open(tmp_path / "mine", os.O_RDWR)
    fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(again)
    assert os.readlink(f"/proc/{holder}/cwd") == "/"
    assert os.getsid(holder) == holder
    assert Path(f"/proc/{holder}/environ").read_bytes() == b""
    wait_until_asleep(holder)  # until it reads its line, its loader may have a library open
    links = [os.readlink(f"/proc/{holder}/fd/{name}") for name in os.listdir(f"/proc/{holder}/fd")]
    assert sum(link.startswith("pipe:") for link in links) == 2
    here = {f"{tree.host.root}/dev/{DEVICE}", f"{tree.host.root}/run/quiet/held.{DEVICE}"}
    assert {link for link in links if not link.startswith("pipe:")} == here
    assert "until quiet restore" in Path(f"/proc/{holder}/cmdline").read_text()


def test_the_lock_of_quiet_is_free_while_the_holder_lives(tree: Tree) -> None:
    apply(tree.host, wish())
    restore(tree.host)  # would raise Refused


def test_a_read_only_user_cannot_block_the_holder(tree: Tree) -> None:
    apply(tree.host, wish())
    record = os.open(f"{tree.host.root}/run/quiet/held.{DEVICE}", os.O_RDONLY)
    tree.host.release(DEVICE)
    fcntl.fcntl(record, fcntl.F_OFD_SETLK, struct.pack("hhqqi", fcntl.F_RDLCK, 0, 0, 0, 0))
    apply(tree.host, wish())
    os.close(record)
    assert tree.drift() == []


def test_a_device_that_leads_out_of_a_recorded_tree_is_not_opened(tmp_path: Path) -> None:
    plant(tmp_path, {"outside": "mine"})
    root = tmp_path / "tree"
    plant(root, {**machine(cpus=2, cgroup=0), "dev/": "", f"sys/class/misc/{DEVICE}/dev": "10:126"})
    (root / "dev" / DEVICE).symlink_to("../../outside")
    done = apply(Host(str(root)), wish())
    assert [item.target for item in (*done.failures, *done.skips) if item.target == TARGET] == [TARGET]
    assert (tmp_path / "outside").read_text() == "mine\n"
    assert Reader(str(root)).held(DEVICE) is None


def test_without_the_device_file_it_is_refused_with_the_reason(tmp_path: Path) -> None:
    plant(tmp_path, {**machine(cpus=2, cgroup=0), f"sys/class/misc/{DEVICE}/dev": "10:126"})
    done = apply(Host(str(tmp_path)), wish())
    assert not done.failures
    assert [(s.target, "container" in s.reason) for s in done.skips if s.target == TARGET] == [(TARGET, True)]


@pytest.mark.slow
def test_an_apply_killed_at_any_step_leaves_no_holder_behind_its_restore(tmp_path: Path) -> None:
    for at in range(1, 60):
        (tmp_path / str(at)).mkdir()
        tree = Tree(tmp_path / str(at))
        cut = killed(lambda tree=tree: apply(tree.host, wish()), at)  # type: ignore[misc]
        assert settled(tree)
        assert not tree.is_open(), at
        assert tree.holders() == [], at
        os.close(tree.reader)
        if not cut:
            break
    assert not cut
    assert at > 10


def settled(tree: Tree) -> bool:
    """Restored. For the instant in which a holder is being started the lock is still its caller's."""
    for _ in range(3000):
        try:
            return restore(tree.host).complete
        except Refused:
            time.sleep(0.01)
    return False
