"""A damaged or foreign journal: the host is restored, or what may still be changed is named; never "nothing left"."""

from __future__ import annotations

import os
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import quiet as api
from quiet.errors import Incomplete, Refused
from quiet.host.host import Host
from quiet.settings import journal
from quiet.settings.apply import apply
from quiet.settings.hold import begin_hold, end_hold
from quiet.settings.profile import load
from quiet.settings.restore import Outcome, restore
from tests import hosts
from tests.quiet.commands import Quiet
from tests.quiet.settings import journals
from tests.quiet.settings.journals import counted, items, sealed
from tests.trees import contents

SEED = 20241123
STAT = "file:/proc/sys/vm/compaction_proactiveness"


class Applied:
    """A recorded machine with the profile bench applied, as often as requested."""

    def __init__(self, root: Path, name: str) -> None:
        self.root, self.host = hosts.unpack(hosts.FOLDER / f"{name}.tar.gz", root), Host(str(root))
        self.before = contents(root)
        apply(self.host, load("bench"))
        self.changed = {name: text for name, text in contents(root).items() if text != self.before[name]}
        self.journal = root / journals.JOURNAL
        self.data = self.journal.read_bytes()

    def again(self, data: bytes) -> None:
        """Apply, with another journal."""
        for name, text in self.changed.items():
            (self.root / name).write_bytes(text)
        for path in self.copies():
            path.unlink()
        self.journal.write_bytes(data)

    def restored(self, data: bytes) -> Outcome:
        """Apply, damage the journal and restore: either everything is restored, or something is named."""
        self.again(data)
        outcome = restore(self.host)
        if outcome.complete:
            assert contents(self.root) == self.before
            assert not self.journal.exists()
        else:
            assert outcome.left
            assert self.journal.read_bytes() == data
            assert [path.read_bytes() for path in self.copies()] == [data]
        return outcome

    def differing(self) -> set[str]:
        """The files that are not as before, of those that apply has changed."""
        return {name for name in self.changed if (self.root / name).read_bytes() != self.before[name]}

    def copies(self) -> list[Path]:
        return sorted(self.journal.parent.glob("journal.damaged-*"))


@pytest.fixture(scope="module")
def applied() -> Iterator[Applied]:
    """In memory, as /run and the kernel's files are."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        applied = Applied(Path(folder), "isolated-6.12")
        yield applied
        applied.restored(applied.data)  # nothing but what apply changes was ever changed


def is_whole(applied: Applied) -> bool:
    return not applied.differing()


def test_an_undamaged_journal_is_restored_and_removed(applied: Applied) -> None:
    assert applied.restored(applied.data).complete


@pytest.mark.slow
def test_a_truncated_journal_is_named_and_its_remainder_restored(applied: Applied) -> None:
    draw = random.Random(SEED)
    ends = [n + 1 for n, byte in enumerate(applied.data[:-1]) if byte == ord("\n")]
    for cut in (0, *ends, *(draw.randrange(len(applied.data)) for _ in range(200))):
        assert not applied.restored(applied.data[:cut]).complete, f"cut at {cut}"


@pytest.mark.slow
def test_a_flipped_bit_anywhere_is_named_or_harmless(applied: Applied) -> None:
    draw = random.Random(SEED)
    seen = Counter[str]()
    for _ in range(500):
        data = bytearray(applied.data)
        at = draw.randrange(len(data))
        data[at] ^= 1 << draw.randrange(8)
        done = applied.restored(bytes(data)).complete
        seen["complete" if done else "named, restored" if is_whole(applied) else "named, not restored"] += 1
    assert seen["complete"] < 20, seen  # only the count of lines may be lower than it is
    assert seen["named, restored"] > 300, seen


def without(line: int) -> Callable[[bytes], bytes]:
    return lambda data: b"".join(text for n, text in enumerate(data.splitlines(keepends=True), 1) if n != line)


def swapped(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:4], lines[5], lines[4], *lines[6:]])


def with_item(item: dict[str, Any]) -> Callable[[bytes], bytes]:
    return lambda data: sealed([*items(data), item])


def begun(**values: Any) -> Callable[[bytes], bytes]:
    return lambda data: sealed([items(data)[0] | values, *items(data)[1:]])


def entry(*fields: Any) -> dict[str, Any]:
    return {"op": "before", "entries": [fields]}


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "it is empty"),
    "no beginning": (without(1), "line 1: missing"),
    "a line removed": (without(60), "line 60: missing"),
    "two lines swapped": (swapped, "line 5"),
    "a line twice": (lambda data: data + data.splitlines(keepends=True)[-1], "out of order"),
    "lines of another program": (lambda data: data + b"hello\n", "checksum"),
    "random bytes": (lambda data: random.Random(SEED).randbytes(4096), "not readable"),
    "no newline": (lambda data: b"x" * 100, "no complete line"),
    "only zeros": (lambda data: bytes(len(data)), "no complete line"),
    "another operation": (lambda data: data.replace(b'"op":"before"', b'"op":"before2"'), "checksum"),
    "another operation, sealed": (with_item({"op": "later"}), "unknown operation 'later'"),
    "another format": (begun(format=3, version="9.9"), "written in format 3 by quiet 9.9"),
    "no format": (begun(format=None), "format None"),
    "time nan": (begun(time="nan"), "line 1: not understood: time nan"),
    "time inf": (begun(time=float("inf")), "line 1: not understood: time inf"),
    "cpus": (begun(cpus={"isolated": "x"}), "line 1: not understood"),
    "a second beginning": (lambda data: sealed([*items(data), items(data)[0]]), "another journal begins here"),
    "another type of target": (with_item(entry("ksm", "nope", "text", "1", None, False)), "unknown target nope"),
    "a target that is none": (with_item(entry("ksm", 5, "int", "1", None, False)), "unknown entry"),
    "an entry of other fields": (with_item(entry("ksm", "file:/x", "text", "1")), "unknown entry"),
    "entries of another shape": (with_item({"op": "before", "entries": 5}), "not understood"),
    "an unrecorded target": (
        with_item({"op": "intent", "target": "file:/x", "value": "1"}),
        "some of its lines are missing",
    ),
    "settled without targets": (with_item({"op": "settled", "values": {}}), "the line lacks recorded targets"),
    "a count of more lines": (lambda data: counted(data, 99999), "99999 lines were written"),
    "deep": (lambda data: b"[" * 100_000 + b"\n" + data, "line 1"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGES)
def test_every_damage_is_named_and_no_command_treats_the_host_as_unchanged(
    name: str, applied: Applied, quiet: Quiet
) -> None:
    damage, words = DAMAGES[name]
    data = damage(applied.data)
    applied.again(data)
    root = ("--root", applied.root)
    for command in (["plan"], ["verify"], ["apply"], ["watch", "--duration", "0.1"]):
        done = quiet(*command, *root)
        assert done.code == 3, (command, done)
        assert "is damaged" in done.err
        assert "`quiet restore`" in done.err
        assert done.err.count("\n") == 1
    status = quiet("status", *root)
    assert "journal is damaged" in status.out
    assert words in status.out
    assert quiet("status", *root, "--json").json["applied"]["complete"] is False
    for call in (api.applied_state, api.isolated_cpus):
        with pytest.raises(Refused, match="is damaged"):
            call(applied.host)
    assert applied.journal.read_bytes() == data

    back = quiet("restore", *root)
    assert back.code == 4
    assert words in back.out
    assert "nothing left changed" not in back.out
    assert "--keep" in back.out
    assert applied.journal.read_bytes() == data
    again = quiet("restore", *root, "--json")
    assert (again.code, again.json["complete"]) == (4, False)
    assert [path.read_bytes() for path in applied.copies()] == [data]
    assert again.json["copy"] == str(applied.copies()[0])
    if name not in ("empty", "random bytes", "no newline", "only zeros", "another operation"):
        assert is_whole(applied)

    kept = quiet("restore", *root, "--keep")
    assert kept.code == 0
    assert "accepted" in kept.out
    assert "nothing left changed" not in kept.out
    assert not applied.journal.exists()
    assert [path.read_bytes() for path in applied.copies()] == [data]
    assert "nothing is applied" in quiet("restore", *root).out


def fifo(path: Path) -> None:
    os.mkfifo(path)


def folder(path: Path) -> None:
    path.mkdir()
    (path / "file").write_text("another program's")


def link(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [fifo, folder, link])
def test_a_journal_that_is_not_a_file_is_named_and_moved_aside_by_keep(
    make: Callable[[Path], None], applied: Applied, quiet: Quiet
) -> None:
    applied.again(b"")
    applied.journal.unlink()
    make(applied.journal)
    root = ("--root", applied.root)
    assert quiet("apply", *root).code == 3
    assert "not a regular file" in quiet("status", *root).out
    back = quiet("restore", *root)
    assert back.code == 4
    assert "not a regular file" in back.out
    assert os.path.lexists(applied.journal)
    assert quiet("restore", *root, "--keep").code == 0
    assert not os.path.lexists(applied.journal)
    (aside,) = applied.copies()
    if aside.is_dir():
        (aside / "file").unlink()
        aside.rmdir()


def test_a_setting_whose_line_is_lost_is_named_and_the_others_are_restored(applied: Applied) -> None:
    lines = applied.data.splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if b'"before"' in line and STAT.encode() in line)
    outcome = applied.restored(b"".join([*lines[:at], b"?" + lines[at], *lines[at + 1 :]]))
    assert STAT in [left.target for left in outcome.left]
    assert applied.differing() == {STAT.removeprefix("file:/")}


def test_a_knob_of_another_version_is_restored_by_its_target(applied: Applied) -> None:
    operations = items(applied.data)
    for row in (row for item in operations for row in item.get("entries", ())):
        row[0] = "a.knob.that.was.renamed"
    assert applied.restored(sealed(operations)).complete


def test_the_journal_of_another_boot_is_ignored_however_damaged(applied: Applied) -> None:
    applied.again(sealed([items(applied.data)[0] | {"boot_id": "another"}, *items(applied.data)[1:]])[:-100])
    assert journal.load(applied.host) is None


def test_a_damaged_hold_is_restored_and_its_holder_learns_of_it(applied: Applied) -> None:
    applied.restored(applied.data)
    begin_hold(applied.host, {STAT: "99"}, knob="vm.compaction", source="me")
    data = applied.journal.read_bytes()
    applied.journal.write_bytes(data[:-20])
    with pytest.raises(Incomplete, match="lines were written"):
        end_hold(applied.host, "me")
    applied.journal.write_bytes(data[10:])
    with pytest.raises(Refused, match="is damaged"):
        end_hold(applied.host, "me")
    assert restore(applied.host, keep=True).complete
    assert is_whole(applied)


@pytest.fixture
def old(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    return tmp_path, journals.format_1(tmp_path)


def now(root: Path, files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: (root / name).read_bytes() for name in files}


@pytest.mark.parametrize("again", [False, True], ids=["at once", "after another apply"])
def test_a_journal_of_format_1_is_restored_whole(old: tuple[Path, dict[str, bytes]], again: bool, quiet: Quiet) -> None:
    root, before = old
    assert now(root, before) != before
    assert "applied: bench on CPUs 2-3" in quiet("status", "--root", root).out
    if again:
        (root / "proc/sys/kernel/timer_migration").write_text("1\n")
        assert quiet("apply", "--root", root).code in (0, 1)
    assert quiet("restore", "--root", root).code == 0
    assert now(root, before) == before
    assert not (root / journals.JOURNAL).exists()


@pytest.mark.slow
def test_a_damaged_journal_of_format_1_causes_no_traceback(old: tuple[Path, dict[str, bytes]]) -> None:
    root, before = old
    after, data, draw = now(root, before), (root / journals.JOURNAL).read_bytes(), random.Random(SEED)
    for _ in range(50):
        flipped = bytearray(data)
        flipped[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        for name, text in after.items():
            (root / name).write_bytes(text)
        (root / journals.JOURNAL).write_bytes(bytes(flipped))
        assert restore(Host(str(root))).left or not (root / journals.JOURNAL).exists()
