"""The monitor on a tree whose counters grow: its reports, and their frequency."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from quiet.console import OutputGone
from quiet.host.reader import Reader
from quiet.watch import events, monitor, rate_limit
from quiet.watch.events import WatchEvent
from quiet.watch.history import HistoryWriter
from quiet.watch.history_summary import summarize
from quiet.watch.monitor import Monitor
from quiet.watch.textfile import Textfile, WatchState
from tests.quiet.commands import Quiet
from tests.quiet.watch.snapshots import interrupts, put, softirqs, stat, tree

INTERVAL_S = 10.0
CPUS = frozenset({2, 3})


class Clock:
    """Both clocks; the monitor costs nothing."""

    now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return 1_764_000_000 + self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    for module in ("quiet.watch.monitor", "quiet.watch.history"):
        monkeypatch.setattr(f"{module}.time", made)
    monkeypatch.setattr(monitor, "spent", lambda: 0.0)
    return made


class Machine:
    """A tree whose counters grow, and a monitor of its CPUs 2 and 3."""

    def __init__(self, folder: Path, clock: Clock, nohz_full: str = "2-3", **parts: object) -> None:
        self.root = tree(folder / "tree", nohz_full, softirqs=softirqs({"SCHED": (0,) * 4}))
        self.clock, self.reported = clock, list[WatchEvent]()
        self.rows = {"131": [0] * 4, "LOC": [0] * 4}
        self._write()
        self.monitor = Monitor(Reader(str(self.root)), INTERVAL_S, self.reported.append, **parts)  # type: ignore[arg-type]
        self.monitor.start(CPUS)

    def _write(self) -> None:
        put(self.root, interrupts=interrupts(self.rows))

    def look(self, cpu: int = 3, **came: int) -> None:
        """An interval later; `nvme` and `timer` came on a CPU."""
        self.rows["131"][cpu] += came.get("nvme", 0)
        self.rows["LOC"][cpu] += came.get("timer", 0)
        self._write()
        self.clock.now += INTERVAL_S
        self.monitor.look(WatchState("bench", 0))

    @property
    def texts(self) -> list[str]:
        return [event.text for event in self.reported]


def test_an_interrupt_is_reported_with_its_device_its_cpu_and_its_number(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock)
    machine.look(nvme=4)
    assert machine.texts == ["IRQ 131 nvme0q7 fired 4 times on CPU 3 in 10 s"]
    detail = machine.reported[0].interruption
    assert detail
    assert (detail.cause, detail.kind, dict(detail.counts), detail.seconds) == ("IRQ 131 nvme0q7", "irq", {3: 4}, 10)


def test_an_interval_without_interruptions_gives_no_line(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock)
    for _ in range(20):
        machine.look()
    machine.monitor.end()
    assert machine.reported == []


@pytest.mark.slow
def test_a_continuing_cause_is_reported_less_and_less_often_but_completely(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock)
    for _ in range(500):
        machine.look(nvme=1)
    machine.monitor.end()
    counts = [event.interruption.counts[3] for event in machine.reported if event.interruption]
    assert counts[:5] == [1, 1, 2, 4, 8]
    assert sum(counts) == 500
    assert len(counts) <= 12
    assert all(event.interruption.seconds <= monitor.HOUR_S for event in machine.reported if event.interruption)


def test_after_a_pause_a_cause_is_reported_at_once_again(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock)
    for _ in range(8):
        machine.look(nvme=1)
    for _ in range(50):
        machine.look()
    before = len(machine.reported)
    machine.look(nvme=3)
    assert machine.texts[before:] == ["IRQ 131 nvme0q7 fired 3 times on CPU 3 in 10 s"]


def test_one_line_has_all_cpus_of_a_cause(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock)
    machine.rows["131"][2] += 1
    machine.look(nvme=2)
    assert machine.texts == ["IRQ 131 nvme0q7 fired 3 times on CPUs 2-3 in 10 s"]


@pytest.mark.slow
def test_the_tick_of_a_cpu_that_has_one_is_reported_once_an_hour(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock, nohz_full="")
    for _ in range(720):
        machine.look(timer=2500)
    machine.monitor.end()
    assert machine.monitor.total == 0
    assert [event.event for event in machine.reported] == [events.NOTE] * len(machine.reported)
    assert len(machine.reported) <= 4
    assert machine.texts[1] == (
        "the tick and its softirqs ran 900000 times in 3600 s on CPU 3, as expected without nohz_full"
    )


def test_a_tick_on_a_tickless_cpu_is_an_interruption(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock)
    machine.look(timer=1)
    assert machine.texts == ["local timer occurred once on CPU 3 in 10 s"]


def test_steal_time_is_reported_as_time(tmp_path: Path, clock: Clock) -> None:
    root = tree(tmp_path, "2-3", stat=stat((0, 0, 0, 0)))
    reported: list[WatchEvent] = []
    watching = Monitor(Reader(str(root)), INTERVAL_S, reported.append)
    watching.start(CPUS)
    put(root, stat=stat((9, 9, 9, 3)))
    clock.now += INTERVAL_S
    watching.end()
    assert [event.text for event in reported] == ["host took 120 ms of CPUs 2-3 in 10 s"]


def test_every_interruption_is_in_the_history(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock, history=HistoryWriter(Reader(), str(tmp_path / "store")))
    for number in range(60):
        machine.look(nvme=5 if number % 6 == 3 else 0)
    machine.monitor.end()
    history = summarize(Reader(), str(tmp_path / "store"), None, 3)
    assert [(row.cause, row.count) for row in history.causes] == [("IRQ 131 nvme0q7", 50)]
    assert history.watched_s == 600


def test_a_full_disk_is_reported_in_one_line_and_the_watch_continues(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(tmp_path, clock, history=HistoryWriter(Reader(), str(tmp_path / "store")))
    write = os.write

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for _ in range(30):
        machine.look(nvme=1)
    notes = [event.text for event in machine.reported if event.event == events.NOTE]
    assert notes == [f"history: {tmp_path}/store: No space left on device; writing is retried"]
    monkeypatch.setattr(os, "write", write)
    machine.look(nvme=1)
    machine.monitor.end()
    assert "history: writing works again" in machine.texts
    assert [row.count for row in summarize(Reader(), str(tmp_path / "store"), None, None).causes] == [31]


def test_with_a_closed_output_the_history_and_the_metrics_are_still_complete(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "quiet.prom"
    machine = Machine(
        tmp_path, clock, history=HistoryWriter(Reader(), str(tmp_path / "store")), textfile=Textfile(str(path))
    )

    def gone(_: WatchEvent) -> None:
        raise OutputGone

    monkeypatch.setattr(machine.monitor, "_report", gone)
    with pytest.raises(OutputGone):
        machine.look(nvme=3)
    with pytest.raises(OutputGone):
        machine.monitor.end()
    assert [row.count for row in summarize(Reader(), str(tmp_path / "store"), None, None).causes] == [3]
    assert "quiet_watching 0\n" in path.read_text()


def test_metrics_are_written_at_each_check_and_at_the_end(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "quiet.prom"
    machine = Machine(tmp_path, clock, textfile=Textfile(str(path)))
    machine.look(nvme=4)
    assert 'quiet_interruptions_total{cpu="3",kind="irq",cause="IRQ 131 nvme0q7"} 4\n' in path.read_text()
    assert "quiet_applied 1\n" in path.read_text()
    machine.monitor.end(WatchState("", 0))
    assert "quiet_watching 0\n" in path.read_text()
    assert "quiet_applied 0\n" in path.read_text()


def test_metrics_that_cannot_be_written_are_reported_in_one_line(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "folder").mkdir()
    machine = Machine(tmp_path, clock, textfile=Textfile(str(tmp_path / "folder/quiet.prom")))
    (tmp_path / "folder").rmdir()
    for _ in range(10):
        machine.look(nvme=1)
    assert sum(event.event == events.NOTE for event in machine.reported) == 1
    (tmp_path / "folder").mkdir()
    machine.look(nvme=1)
    assert machine.texts[-1].endswith("writing works again")


def test_expensive_checks_are_further_apart(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(tmp_path, clock)
    spent = iter(0.1 * number for number in range(100))
    monkeypatch.setattr(monitor, "spent", lambda: next(spent))
    machine.look()
    assert rate_limit.COUNTS_SHARE < 0.0005
    assert machine.monitor.at - clock.now == pytest.approx(0.1 / rate_limit.COUNTS_SHARE)


def test_after_a_suspend_one_check_replaces_all_missed_ones(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock)
    clock.now += 5000
    machine.look(nvme=2)
    assert machine.monitor.at == clock.now + INTERVAL_S
    assert machine.texts == ["IRQ 131 nvme0q7 fired 2 times on CPU 3 in 5010 s"]


def test_other_cpus_are_watched_from_then_on(tmp_path: Path, clock: Clock) -> None:
    machine = Machine(tmp_path, clock)
    machine.monitor.start(frozenset({1}))
    machine.look(cpu=3, nvme=5)
    machine.look(cpu=1, nvme=2)
    assert machine.texts == ["IRQ 131 nvme0q7 fired 2 times on CPU 1 in 10 s"]


def test_cpus_are_watched_without_a_profile(tmp_path: Path, quiet: Quiet) -> None:
    root = tree(tmp_path / "tree")
    options = ("--cpus", "3", "--duration", "0.1", "--store", tmp_path / "store", "--textfile", tmp_path / "x.prom")
    done = quiet("watch", "--root", root, *options, "--json")
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert [line["event"] for line in lines] == ["watching", "ended"]
    assert lines[-1]["interruptions"] == 0
    assert "quiet_watching 0" in (tmp_path / "x.prom").read_text()
    asked = quiet("watch", "--history", "--store", tmp_path / "store", "--cpu", 3)
    assert (asked.code, asked.out.count("\n")) == (0, 1)


@pytest.mark.slow
def test_the_history_is_a_table_by_cause(tmp_path: Path, quiet: Quiet, clock: Clock) -> None:
    machine = Machine(tmp_path, clock, history=HistoryWriter(Reader(), str(tmp_path / "store")))
    for _ in range(30):
        machine.look(nvme=1)
    machine.monitor.end()
    done = quiet("watch", "--history", "--store", tmp_path / "store", "--cpu", "3")
    head, columns, row = done.out.splitlines()
    assert head == "30 interruptions of CPU 3, watched for 5 min:"
    assert columns.split() == ["cause", "CPUs", "count", "first", "last", "busiest", "minute"]
    assert row.split()[:5] == ["IRQ", "131", "nvme0q7", "3", "30"]
    assert row.endswith("(6)")
    found = quiet("watch", "--history", "--store", tmp_path / "store", "--json").json
    assert (found["causes"][0]["count"], found["causes"][0]["cpus"], found["watched_s"]) == (30, "3", 300)
    none = quiet("watch", "--history", "--store", tmp_path / "store", "--cpu", "2")
    assert none.out == "no interruption of CPU 2, watched for 5 min\n"
    other = quiet("watch", "--history", "--store", tmp_path / "store", "--cpu", "1")
    assert other.out == "nothing is recorded for CPU 1: `quiet watch` records only while it runs\n"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--history", "--store", "nowhere"), "there is no history in nowhere"),
        (("--history", "--unit"), "--history and --unit"),
        (("--since", "8h"), "--since needs --history"),
        (("--cpu", "3"), "--cpu needs --history"),
        (("--cpus", "9"), "--cpus 9: list only online CPUs; online CPUs: 0-3"),
        (("--cpus", "0-3"), "leave one CPU for the watch itself"),
        (("--cpus", ""), "--cpus: no CPU given"),
        (("--cpus", "x"), "--cpus: 'x' is not a CPU list"),
        (("--cpus", "3", "--repair"), "--cpus watches CPUs without a profile"),
        (("--cpus", "3", "--interval", "0.1"), "--interval 0.1: must be between 1 and 1,000,000 s"),
        (("--cpus", "3", "--textfile", "/nowhere/x.prom"), "--textfile /nowhere/x.prom: no directory /nowhere"),
        (("--unit", "--repair"), "--unit: the unit has no permission to repair"),
        (("--history", "--since", "soon"), "--since 'soon'"),
        (("--history", "--cpu", "-1"), "--cpu -1"),
        (("--history", "--repair"), "--repair has no effect with --history: omit it"),
        (("--history", "--root", "recorded"), "--root has no effect with --history"),
        (("--unit", "--json"), "--json has no effect with --unit"),
        (("--unit", "--duration", "5"), "--duration has no effect with --unit"),
    ],
)
def test_invalid_options_are_usage_errors(tmp_path: Path, quiet: Quiet, options: tuple[str, ...], words: str) -> None:
    root = () if {"--history", "--unit"} & {*options} else ("--root", tree(tmp_path))
    done = quiet("watch", *root, *options)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


def test_a_store_that_cannot_be_used_is_refused(tmp_path: Path, quiet: Quiet) -> None:
    (tmp_path / "file").write_text("")
    done = quiet("watch", "--root", tree(tmp_path / "tree"), "--cpus", "3", "--store", tmp_path / "file/x")
    assert done.code == 3
    assert "--store" in done.err
