"""The journal: it is read back as written, whatever happened to its last line."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from quiet.errors import Refused
from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.machine.cpu_selection import CpuPartition
from quiet.settings import journal
from quiet.settings.applied_state import AppliedState, TargetState
from quiet.settings.journal_writer import Journal
from tests.quiet.kernels import small, tree
from tests.quiet.settings import journals

CPUS = CpuPartition(frozenset({1, 2}), frozenset({0}), frozenset({3}), "")
BEFORE = TargetState("ksm", "file:/a", "number", "1", None, False)
PASSING = TargetState("ksm", "irq:3", "cpulist", None, "chip 3 eth0", True)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(str(tree(tmp_path / "machine", small())))


def write(host: Host) -> list[dict[str, Any]]:
    """A journal with a line of each kind; returns its operations."""
    with locked(host):
        log = Journal(host)
        log.begin(host, "bench", "/x/bench.toml", CPUS, True)
        log.before([BEFORE, PASSING])
        log.intent("file:/a", "0")
        log.done("file:/a", "0")
        log.refused("irq:3", "managed")
        log.settled({"file:/a": "0", "irq:3": None})
        log.restore(["file:/a"], ["irq:3"])
        log.close()
    return journals.items(Path(host.root, journals.JOURNAL).read_bytes())


def read(host: Host, operations: list[dict[str, Any]], torn: bytes = b"") -> AppliedState | None:
    Path(host.root, journals.JOURNAL).write_bytes(journals.sealed(operations) + torn)
    return journal.load(host)


def test_without_a_journal_nothing_is_applied(host: Host) -> None:
    assert journal.load(host) is None


def test_a_journal_reads_back_as_what_was_written(host: Host) -> None:
    write(host)
    record = journal.load(host)
    assert record is not None
    assert (record.profile, record.source, record.passing) == ("bench", "/x/bench.toml", True)
    assert record.cpus[:3] == CPUS[:3]
    assert list(record.entries) == ["file:/a", "irq:3"]
    entry = record.entries["file:/a"]
    assert (entry.before, entry.wanted, entry.after, entry.finished) == ("1", "0", "0", True)
    assert record.entries["irq:3"].identity == "chip 3 eth0"
    assert record.refused == {"irq:3": "managed"}
    assert record.complete
    assert record.restoring
    assert (record.conflicts, record.foreign) == ({"file:/a"}, {"irq:3"})


@pytest.mark.parametrize("cut", range(2, 9))
def test_a_truncated_last_line_counts_as_not_written(host: Host, cut: int) -> None:
    operations = write(host)
    whole = read(host, operations[: cut - 1])
    torn = journals.sealed(operations[:cut]).splitlines()[-1][:-5]
    assert read(host, operations[: cut - 1], torn) == whole
    assert whole is not None


def test_a_writer_continues_before_a_truncated_line(host: Host) -> None:
    operations = write(host)
    read(host, operations[:4], b'{"op":"intent","tar')
    with locked(host):
        log = Journal(host)
        log.intent("file:/a", "7")
        log.close()
    record = journal.load(host)
    assert record is not None
    assert record.entries["file:/a"].wanted == "7"


def test_every_line_is_one_object_with_an_operation_of_the_documented_ones(host: Host) -> None:
    operations = [item["op"] for item in write(host)]
    assert operations == ["begin", "before", "before", "intent", "done", "refused", "settled", "restore"]
    assert journal.__doc__ is not None
    assert all(f"    {name}" in journal.__doc__ or f" {name} " in journal.__doc__ for name in operations)


def test_the_first_recorded_value_is_the_original(host: Host) -> None:
    later = {"op": "before", "entries": [["ksm", "file:/a", "number", "77", None, False]]}
    record = read(host, [*write(host)[:2], later])
    assert record is not None
    assert record.entries["file:/a"].before == "1"


def test_a_value_that_differs_from_the_asked_one_is_accepted(host: Host) -> None:
    rounded = {"op": "done", "target": "file:/a", "value": "5"}
    record = read(host, [*write(host)[:4], rounded])
    assert record is not None
    assert record.accepted() == {"file:/a": "5"}


def test_the_journal_of_another_boot_is_ignored_and_removed(host: Host) -> None:
    write(host)
    host.write("/proc/sys/kernel/random/boot_id", "another")
    assert journal.load(host) is None
    log = Journal(host)
    log.begin(host, "mine", "mine", CPUS, False)
    log.close()
    record = journal.load(host)
    assert record is not None
    assert (record.profile, record.entries) == ("mine", {})


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o000])
def test_every_user_may_read_the_journal_and_only_its_owner_write_it(host: Host, mask: int) -> None:
    before = os.umask(mask)
    try:
        write(host)
    finally:
        os.umask(before)
    modes = {name: Path(host.root, "run/quiet", name).stat().st_mode & 0o777 for name in (".", "journal.jsonl", "lock")}
    assert modes == {".": 0o755, "journal.jsonl": 0o644, "lock": 0o600}


def test_only_one_process_holds_the_lock(host: Host) -> None:
    with locked(host), pytest.raises(Refused, match="wait until it ends"), locked(host):
        pass
    with locked(host):
        pass


def test_values_with_any_bytes_survive(host: Host) -> None:
    with locked(host):
        log = Journal(host)
        log.begin(host, "bench", "bench", CPUS, False)
        log.before([TargetState("ksm", "file:/a", "text", 'a "b"\n\tc\udcff é', None, False)])
        log.close()
    record = journal.load(host)
    assert record is not None
    assert record.entries["file:/a"].before == 'a "b"\n\tc\udcff é'
