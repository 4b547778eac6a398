"""The history of interruptions: written records are found again, whatever happens to the files."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from quiet.errors import Refused, UsageError
from quiet.host.reader import Reader
from quiet.noise.attribute import Cause
from quiet.watch import history_summary
from quiet.watch.history import NAME, OLD, HistoryWriter
from quiet.watch.history_summary import summarize
from quiet.watch.interrupt_counts import Interruption

NOON = 1_764_000_000 // 3600 * 3600
CPUS = frozenset({2, 3})
NVME, TIMER = Cause("irq", "131 nvme0q7"), Cause("vector", "local_timer")


def came(count: int, cpu: int = 3, cause: Cause = NVME) -> list[Interruption]:
    return [Interruption(cpu, cause, count)]


def written(folder: Path, looks: list[tuple[float, list[Interruption]]], ends: bool = True) -> HistoryWriter:
    """Checks at this many seconds after noon."""
    writer = HistoryWriter(Reader(), str(folder))
    writer.start(CPUS, NOON)
    for second, items in looks:
        writer.add(items, [], NOON + second)
    if ends:
        writer.close()
    return writer


def every(seconds: range, items: dict[int, list[Interruption]]) -> list[tuple[float, list[Interruption]]]:
    return [(second, items.get(second, [])) for second in seconds]


def test_a_cause_has_its_count_its_times_and_its_busiest_minute(tmp_path: Path) -> None:
    items = {30: came(2), 90: came(1), 100: came(3), 110: came(1), 3000: came(4)}
    written(tmp_path, every(range(10, 3601, 10), items))
    history = summarize(Reader(), str(tmp_path), None, 3)
    (row,) = history.causes
    assert (row.cause, row.kind, row.cpus, row.count) == ("IRQ 131 nvme0q7", "irq", frozenset({3}), 11)
    assert (row.first - NOON, row.last - NOON) == (0, 3000)
    assert (row.busiest - NOON, row.busiest_count) == (60, 5)
    assert history.watched_s == 3600


def test_an_hour_without_interruptions_is_a_few_lines(tmp_path: Path) -> None:
    written(tmp_path, every(range(10, 3601, 10), {}))
    lines = (tmp_path / NAME).read_text().splitlines()
    assert len(lines) <= 7
    assert all(json.loads(line)["counts"] == {} for line in lines)
    assert summarize(Reader(), str(tmp_path), None, None).watched_s == 3600


def test_the_time_before_an_interruption_is_not_part_of_its_minute(tmp_path: Path) -> None:
    written(tmp_path, every(range(10, 601, 10), {500: came(1)}))
    first, second, *_ = (json.loads(line) for line in (tmp_path / NAME).read_text().splitlines())
    assert (first["from"] - NOON, first["to"] - NOON, first["counts"]) == (0, 490, {})
    assert second["counts"] == {"3": {"irq 131 nvme0q7": 1}}
    assert second["to"] - second["from"] <= 70


def test_interruptions_of_the_tick_are_summed_separately(tmp_path: Path) -> None:
    writer = HistoryWriter(Reader(), str(tmp_path))
    writer.start(CPUS, NOON)
    for second in range(10, 7201, 10):
        writer.add([], came(2500, 2, TIMER), NOON + second)
    writer.close()
    history = summarize(Reader(), str(tmp_path), None, None)
    assert history.causes == ()
    assert history.expected == {"local timer": 2500 * 720}
    assert len((tmp_path / NAME).read_text().splitlines()) <= 20


def test_since_and_cpu_select_the_history(tmp_path: Path) -> None:
    written(tmp_path, every(range(10, 3601, 10), {30: came(2), 1800: came(1), 1810: came(9, 2, TIMER)}))
    assert [row.count for row in summarize(Reader(), str(tmp_path), NOON + 1000, 3).causes] == [1]
    assert [row.cause for row in summarize(Reader(), str(tmp_path), None, 2).causes] == ["local timer"]
    assert summarize(Reader(), str(tmp_path), NOON + 1000, 3).watched_s == 2600
    assert summarize(Reader(), str(tmp_path), None, 1).watched_s == 0
    assert summarize(Reader(), str(tmp_path), NOON + 9000, None).watched_s == 0


def test_a_kill_loses_only_the_last_minute(tmp_path: Path) -> None:
    writer = written(tmp_path, every(range(10, 300, 10), {30: came(2), 280: came(5)}), ends=False)
    os.close(writer._lock)  # the process is gone, and its lock with it
    assert sum(row.count for row in summarize(Reader(), str(tmp_path), None, None).causes) == 2
    again = HistoryWriter(Reader(), str(tmp_path))
    again.start(CPUS, NOON + 400)
    again.add(came(1), [], NOON + 410)
    again.close()
    assert sum(row.count for row in summarize(Reader(), str(tmp_path), None, None).causes) == 3


def test_a_truncated_line_affects_no_other(tmp_path: Path) -> None:
    written(tmp_path, [(10, came(2))])
    with open(tmp_path / NAME, "ab") as file:
        file.write(b'{"from":17640')
    written(tmp_path, [(130, came(3))])
    history = summarize(Reader(), str(tmp_path), None, None)
    assert sum(row.count for row in history.causes) == 5
    assert history.damaged == 1


@pytest.mark.parametrize(
    "line",
    [
        *("[]", "null", "{}", '{"from":1,"to":2}', '{"from":2,"to":1,"cpus":"3","counts":{}}', "\0\0\0", "[" * 100_000),
        *('{"from":1,"to":2,"cpus":"x","counts":{}}', '{"from":1,"to":2,"cpus":"3","counts":{"3":[]}}'),
        *('{"from":1,"to":Infinity,"cpus":"3","counts":{}}', '{"from":1,"to":1e300,"cpus":"3","counts":{}}', "\xff"),
    ],
)
def test_a_damaged_line_is_counted_and_left_out(tmp_path: Path, line: str) -> None:
    written(tmp_path, [(10, came(2))])
    with open(tmp_path / NAME, "ab") as file:
        file.write(line.encode("latin-1") + b"\n")
    history = summarize(Reader(), str(tmp_path), None, None)
    assert (history.damaged, [row.count for row in history.causes]) == (1, [2])


def test_the_files_are_bounded_and_the_newest_minutes_are_kept(tmp_path: Path) -> None:
    writer = HistoryWriter(Reader(), str(tmp_path), most_bytes=8000)
    writer.start(CPUS, NOON)
    for second in range(60, 60 * 500, 60):
        writer.add(came(1), [], NOON + second)
    writer.close()
    assert sum((tmp_path / name).stat().st_size for name in (NAME, OLD)) <= 8000 + 200
    history = summarize(Reader(), str(tmp_path), None, None)
    assert history.damaged == 0
    assert history.causes[0].last == NOON + 499 * 60
    assert 20 < history.causes[0].count < 499


def test_a_new_file_that_cannot_be_created_once_is_created_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = HistoryWriter(Reader(), str(tmp_path), most_bytes=200)
    writer.start(CPUS, NOON)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(writer._reader, "open", full)

    def until_full() -> None:
        for second in range(60, 60 * 20, 60):
            writer.add(came(1), [], NOON + second)

    with pytest.raises(OSError, match="No space left"):
        until_full()
    monkeypatch.undo()
    writer.add(came(1), [], NOON + 60 * 30)
    writer.close()
    assert summarize(Reader(), str(tmp_path), None, None).causes[0].last == NOON + 60 * 30


def test_a_full_disk_is_an_error_each_time_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = HistoryWriter(Reader(), str(tmp_path))
    writer.start(CPUS, NOON)
    write = os.write

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    def nearly_full(fd: int, data: bytes) -> int:
        return write(fd, bytes(data)[:7])

    monkeypatch.setattr(os, "write", full)
    for minute in range(1, 5):
        if minute == 1:
            writer.add(came(1), [], NOON + 60)
        else:
            with pytest.raises(OSError, match="No space"):
                writer.add(came(1), [], NOON + 60 * minute)
    monkeypatch.setattr(os, "write", nearly_full)
    writer.add(came(1), [], NOON + 300)
    writer.close()
    history = summarize(Reader(), str(tmp_path), None, None)
    assert (history.damaged, [row.count for row in history.causes]) == (0, [5])


def test_a_disk_that_stays_full_takes_no_more_than_a_mebibyte(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = HistoryWriter(Reader(), str(tmp_path))
    writer.start(CPUS, NOON)
    monkeypatch.setattr("quiet.watch.history._WAITING_BYTES", 1000)
    writer._waiting += b"x" * 500 + b"\n" + b'{"from":1,"to":2,"cpus":"3","counts":{}}\n' * 100
    writer.write()
    assert (tmp_path / NAME).stat().st_size <= 1001
    assert summarize(Reader(), str(tmp_path), None, None).damaged == 0
    writer.close()


def test_a_removed_file_is_created_again(tmp_path: Path) -> None:
    writer = written(tmp_path, [(10, came(2)), (70, [])], ends=False)
    (tmp_path / NAME).unlink()
    writer.add(came(3), [], NOON + 80)
    writer.close()
    assert [row.count for row in summarize(Reader(), str(tmp_path), None, None).causes] == [3]


def test_a_removed_directory_is_an_error_until_it_exists_again(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    writer = written(folder, [(10, came(2)), (70, [])], ends=False)
    shutil.rmtree(folder)
    for _ in range(2):
        with pytest.raises(FileNotFoundError):
            writer.add(came(3), [], NOON + 80)
    folder.mkdir()
    writer.close()
    assert [row.count for row in summarize(Reader(), str(folder), None, None).causes] == [6]


def test_a_clock_that_is_set_back_begins_a_new_line(tmp_path: Path) -> None:
    written(tmp_path, [(1000, came(2)), (10, came(1)), (20, came(1))])
    history = summarize(Reader(), str(tmp_path), None, None)
    assert (history.damaged, history.causes[0].count, history.causes[0].first) == (0, 4, NOON)


def test_other_cpus_begin_a_new_line(tmp_path: Path) -> None:
    writer = written(tmp_path, [(10, came(2))], ends=False)
    writer.start(frozenset({1}), NOON + 20)
    writer.add(came(4, 1), [], NOON + 30)
    writer.close()
    assert [(row.cpus, row.count) for row in summarize(Reader(), str(tmp_path), None, 1).causes] == [
        (frozenset({1}), 4)
    ]
    assert summarize(Reader(), str(tmp_path), None, 3).causes[0].count == 2


def test_two_watches_do_not_write_one_history(tmp_path: Path) -> None:
    writer = HistoryWriter(Reader(), str(tmp_path))
    with pytest.raises(Refused, match="another `quiet watch` is writing the history"):
        HistoryWriter(Reader(), str(tmp_path))
    writer.close()
    HistoryWriter(Reader(), str(tmp_path)).close()


def test_every_user_may_read_it_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        written(tmp_path, [(10, came(2))])
    finally:
        os.umask(before)
    assert (tmp_path / NAME).stat().st_mode & 0o777 == 0o644


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="no history is kept"):
        HistoryWriter(Reader(), str(tmp_path / "file/below"))


def test_nothing_is_written_to_a_file_of_others(tmp_path: Path) -> None:
    (tmp_path / "theirs").write_text("x")
    os.link(tmp_path / "theirs", tmp_path / NAME)
    with pytest.raises(Refused, match="not a regular file with a single link"):
        HistoryWriter(Reader(), str(tmp_path))
    (tmp_path / NAME).unlink()
    (tmp_path / NAME).symlink_to("theirs")
    with pytest.raises(Refused, match="no history is kept"):
        HistoryWriter(Reader(), str(tmp_path))
    assert (tmp_path / "theirs").read_text() == "x"


def test_without_a_history_one_line_says_so(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no history in"):
        summarize(Reader(), str(tmp_path), None, None)


@pytest.mark.parametrize(("text", "ago"), [("90s", 90), ("30m", 1800), ("30min", 1800), ("8h", 28800), ("2d", 172800)])
def test_since_takes_a_length_of_time(text: str, ago: int) -> None:
    assert history_summary.since(text, NOON) == NOON - ago


def test_since_takes_a_time_of_the_day_or_a_date() -> None:
    for text in ("00:00", "12:34", "23:59"):
        assert 0 <= NOON - history_summary.since(text, NOON) < 86400 + 3600
    assert history_summary.since("2026-01-31T22:00+00:00") == 1769896800
    assert history_summary.since("2026-01-31 22:00+00:00") == 1769896800


@pytest.mark.parametrize("text", ["", "8", "h", "-8h", "25:00", "12:61", "yesterday", "9999999h", "٣h", "2026-02-31"])
def test_since_refuses_what_is_not_a_time(text: str) -> None:
    with pytest.raises(UsageError, match="--since"):
        history_summary.since(text, NOON)
