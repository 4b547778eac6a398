"""Watching on a tree of files: a write is reported at once, and repaired with --repair.

Events that only a kernel sends (devices, processes, CPUs) are in tests/lab/cases/test_watch.py.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from quiet.errors import Refused
from quiet.host.host import Host
from quiet.settings import apply, journal, journal_writer, restore
from quiet.settings.profile import load
from quiet.watch import events, rate_limit, watcher
from quiet.watch.events import WatchEvent
from quiet.watch.monitor import Monitor
from quiet.watch.textfile import Textfile
from quiet.watch.watcher import Watcher, WatchOptions
from tests.quiet import kernels
from tests.quiet.commands import Quiet
from tests.quiet.watch import snapshots
from tests.trees import contents

STAT = "proc/sys/vm/stat_interval"
KSM = "sys/kernel/mm/ksm/run"
PROFILE = """
[cpus]
isolated = "3"
[knobs]
"vm.stat_interval" = "quiet"
ksm = "quiet"
"irq.default" = "quiet"
"""


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """News settle sooner than for users."""
    for module in (rate_limit, watcher):
        monkeypatch.setattr(module, "SETTLE_S", 0.02)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A tree with a profile of three knobs applied."""
    (tmp_path / "three.toml").write_text(PROFILE)
    made = Host(str(kernels.tree(tmp_path / "tree")))
    assert not apply.apply(made, load(str(tmp_path / "three.toml"))).failures
    return made


def watch(
    host: Host, *doings: Callable[[], object], repair: bool = False, seconds: float = 20, until: str = ""
) -> tuple[int, list[WatchEvent]]:
    """Watch while things happen, each after the previous one was reported (or repaired); ends after the last one.

    `until`: it ends a little after such an event.
    """
    heard: list[WatchEvent] = []
    answers = (
        (events.WATCHING, events.REPAIRED, events.REFUSED) if repair else (events.WATCHING, events.DRIFT, events.MENDED)
    )
    waiting = iter(doings)

    def report(event: WatchEvent) -> None:
        heard.append(event)
        if event.event in answers and any(each.event == events.WATCHING for each in heard):
            if doing := next(waiting, None):
                doing()
            elif seconds == 20:
                os.kill(os.getpid(), signal.SIGINT)
        elif event.event == until:
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()

    return Watcher(host, WatchOptions(repair, 60.0, seconds), report).run(), heard


def put(host: Host, path: str, value: str) -> Callable[[], object]:
    return lambda: Path(host.root, path).write_text(value + "\n")


def said(heard: list[WatchEvent]) -> list[tuple[str, str]]:
    return [(event.event, event.change.knob) for event in heard if event.change]


def test_a_quiet_host_has_nothing_to_report(host: Host) -> None:
    code, heard = watch(host)
    assert code == 0
    assert [event.event for event in heard] == [events.WATCHING, events.ENDED]
    assert heard[-1].summary
    assert heard[-1].summary.drifts == 0


def test_a_setting_that_another_program_changes_is_reported(host: Host) -> None:
    code, heard = watch(host, put(host, STAT, "1"))
    assert code == 1
    (drift,) = [event for event in heard if event.change]
    assert drift.event == events.DRIFT
    assert drift.change
    assert (drift.change.knob, drift.change.current, drift.change.wanted) == ("vm.stat_interval", "1", "120")
    assert drift.by == f"a write to /{STAT}"
    assert Path(host.root, STAT).read_text() == "1\n"


def test_drift_that_another_program_corrects_is_still_reported(host: Host) -> None:
    code, heard = watch(host, put(host, KSM, "1"), put(host, KSM, "0"))
    assert said(heard) == [(events.DRIFT, "ksm"), (events.MENDED, "ksm")]
    assert code == 1


def test_the_same_value_written_again_is_not_drift(host: Host) -> None:
    code, heard = watch(host, put(host, STAT, "120"), seconds=0.2)
    assert (code, said(heard)) == (0, [])


def test_a_drift_is_reported_once(host: Host) -> None:
    def both() -> None:
        put(host, STAT, "1")()
        put(host, KSM, "1")()

    _, heard = watch(host, put(host, STAT, "1"), both)
    assert said(heard) == [(events.DRIFT, "vm.stat_interval"), (events.DRIFT, "ksm")]


def test_with_repair_a_setting_is_set_again_and_restored_to_its_original_value(host: Host) -> None:
    before = {path: text for path, text in kernels.settings().items() if path in (STAT, KSM)}
    code, heard = watch(host, put(host, STAT, "7"), repair=True)
    assert said(heard) == [(events.DRIFT, "vm.stat_interval"), (events.REPAIRED, "vm.stat_interval")]
    assert code == 0
    assert Path(host.root, STAT).read_text() == "120\n"
    assert restore.restore(host).complete
    assert {path: Path(host.root, path).read_text().strip() for path in before} == before


def test_earlier_drift_is_reported_at_the_start(host: Host) -> None:
    put(host, KSM, "1")()
    code, heard = watch(host)
    assert heard[0].event == events.DRIFT
    assert heard[0].by == "the first check"
    assert code == 1


def test_a_restore_ends_the_watch(host: Host) -> None:
    code, heard = watch(host, lambda: restore.restore(host))
    assert code == 0
    assert heard[-1].text.startswith("the profile was restored after")


def test_repair_never_applies_a_restored_profile(host: Host) -> None:
    def both() -> None:
        restore.restore(host)
        put(host, STAT, "5")()

    watch(host, both, repair=True, seconds=0.2)
    assert journal.load(host) is None
    assert Path(host.root, STAT).read_text() == "5\n"


@pytest.mark.parametrize("repair", [False, True])
def test_a_journal_that_is_damaged_while_it_is_watched_ends_the_watch(host: Host, repair: bool) -> None:
    journal_of = Path(host.root, "run/quiet/journal.jsonl")
    with pytest.raises(Refused, match="is damaged: it is empty; run `quiet restore`"):
        watch(host, lambda: journal_of.write_bytes(b""), repair=repair, seconds=10)
    assert journal_of.read_bytes() == b""


def test_the_watch_waits_for_an_unfinished_restore(host: Host) -> None:
    log = journal_writer.Journal(host)
    log.restore((), ())
    log.close()
    code, heard = watch(host, put(host, STAT, "1"), repair=True, seconds=0.2)
    assert said(heard) == []
    assert code == 0


@pytest.mark.slow
def test_changes_by_another_running_quiet_are_not_drift(host: Host) -> None:
    def apply_by_another() -> None:
        log = journal_writer.Journal(host)
        log.before([])
        log.intent(f"file:/{STAT}", "120")  # it begins to write
        put(host, STAT, "1")()
        log.close()

    code, heard = watch(host, apply_by_another, until=events.NOTE)
    assert (code, said(heard)) == (0, [])
    assert any("an apply or a restore is in progress" in event.text for event in heard)


def test_a_refused_repair_is_reported_and_ends_with_exit_code_1(host: Host, tmp_path: Path) -> None:
    stubborn = kernels.Kernel(Path(host.root), kernels.refuse("/stat_interval", 5))
    code, heard = watch(stubborn, put(host, STAT, "7"), repair=True)
    assert (events.REFUSED, "vm.stat_interval") in said(heard)
    assert code == 1


def test_where_nothing_is_applied_nothing_is_watched(tmp_path: Path, quiet: Quiet) -> None:
    done = quiet("watch", "--root", kernels.tree(tmp_path / "tree"))
    assert done.code == 3
    assert "nothing is applied" in done.err


@pytest.mark.parametrize("time", ["0", "nan", "inf", "-inf"])
@pytest.mark.parametrize("option", ["--rescan", "--duration"])
def test_invalid_times_are_usage_errors(host: Host, quiet: Quiet, option: str, time: str) -> None:
    done = quiet("watch", "--root", host.root, f"{option}={time}")
    assert done.code == 2
    assert option in done.err


def test_each_line_of_json_is_one_object(host: Host, quiet: Quiet) -> None:
    put(host, KSM, "1")()
    done = quiet("watch", "--root", host.root, "--duration", "0.1", "--json")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 1
    assert [line["event"] for line in lines] == ["drift", "watching", "ended"]
    assert (lines[0]["knob"], lines[0]["current"], lines[0]["wanted"]) == ("ksm", "1", "0")
    assert lines[-1]["open"] == 1
    assert lines[-1]["cpu_percent"] >= 0
    assert all(isinstance(line["time"], float) for line in lines)


def test_a_line_for_people_has_the_time_and_the_values(host: Host, quiet: Quiet) -> None:
    put(host, KSM, "1")()
    done = quiet("watch", "--root", host.root, "--duration", "0.1")
    assert "drift            ksm: /sys/kernel/mm/ksm/run: 1, wanted 0  (reported by the first check)" in done.out
    assert done.out[:8].count(":") == 2


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_it_with_a_summary(host: Host, name: str) -> None:
    heard: list[WatchEvent] = []

    def report(event: WatchEvent) -> None:
        heard.append(event)
        if event.event == events.WATCHING:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.Signals[name])).start()

    assert Watcher(host, WatchOptions(seconds=20), report).run() == 0
    assert re.match(rf"{name} after \d+ s: 0 drifts", heard[-1].text)


def test_beside_drift_the_interruptions_of_the_isolated_cpus_are_reported(host: Host, tmp_path: Path) -> None:
    root = Path(host.root)
    rows = {"131": [5] * 4}
    put(host, "proc/interrupts", snapshots.interrupts(rows))()
    heard: list[WatchEvent] = []
    path = tmp_path / "quiet.prom"

    def report(event: WatchEvent) -> None:
        heard.append(event)
        if event.event == events.WATCHING:
            rows["131"][3] += 4
            rows["131"][0] += 4
            snapshots.put(root, interrupts=snapshots.interrupts(rows))
            put(host, KSM, "1")()
        if (
            event.event in (events.INTERRUPTED, events.DRIFT)
            and sum(each.event != events.WATCHING for each in heard) == 2
        ):
            os.kill(os.getpid(), signal.SIGINT)

    watching = Watcher(host, WatchOptions(seconds=20), report)
    watching.monitor = Monitor(host, 0.05, report, textfile=Textfile(str(path)))
    assert watching.run() == 1
    (interrupted,) = [event.interruption for event in heard if event.interruption]
    assert (interrupted.cause, dict(interrupted.counts)) == ("IRQ 131 nvme0q7", {3: 4})
    assert heard[-1].summary
    assert heard[-1].summary.interruptions == 4
    assert "quiet_applied 1\n" in path.read_text()
    assert "quiet_watching 0\n" in path.read_text()


def test_after_a_restore_the_metrics_say_so(host: Host, tmp_path: Path) -> None:
    put(host, "proc/interrupts", snapshots.interrupts({"131": [5] * 4}))()
    path = tmp_path / "quiet.prom"

    def report(event: WatchEvent) -> None:
        if event.event == events.WATCHING:
            restore.restore(host)

    watching = Watcher(host, WatchOptions(seconds=20), report)
    watching.monitor = Monitor(host, 0.05, report, textfile=Textfile(str(path)))
    assert watching.run() == 0
    assert "quiet_applied 0\n" in path.read_text()


def test_where_interruptions_cannot_be_counted_drift_is_still_watched(host: Host, quiet: Quiet) -> None:
    (Path(host.root) / "proc/interrupts").unlink(missing_ok=True)
    done = quiet("watch", "--root", host.root, "--duration", "0.1")
    assert done.code == 0
    assert "interruptions cannot be counted: /proc/interrupts: No such file" in done.out.splitlines()[0]


def test_watching_without_repair_writes_nothing(host: Host) -> None:
    before = contents(Path(host.root))
    watch(host)
    assert contents(Path(host.root)) == before
