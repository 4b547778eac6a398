"""Resets, with real processes and files; tests that need systemd or root run in the lab."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
import pytest

from cbench.study.process import process_tags
from cbench.study.process.process_tags import ProcessTags
from cbench.study.process.run_command import CommandError
from cbench.study.records import StoredFacts
from cbench.study.resets.caches import CachesReset
from cbench.study.resets.cool_down import CoolDownReset
from cbench.study.resets.processes import ProcessesReset
from cbench.study.resets.reset import SYSTEMD_RUNNING, CommandReset, NoReset, Reset, ResetContext, ResetError
from cbench.study.resets.service import ServiceReset
from quiet.host.reader import Reader
from tests.cbench.running import alive
from tests.cbench.study.running import order, rows, study, written

ENVIRONMENT = {"PATH": os.environ["PATH"]}


def ours(identity: str = "here") -> ProcessTags:
    return ProcessTags(identity, 10, ("a", "bb"))


def done(
    wanted: Reset, folder: Path, tags: ProcessTags | None = None, environment: dict[str, str] | None = None
) -> StoredFacts:
    wanted.prepare()
    return wanted.perform(0, ResetContext(str(folder), environment or ENVIRONMENT, tags or ours()))


def on(reader: Reader, wanted: Reset) -> StoredFacts:
    return wanted.perform(0, ResetContext("/", ENVIRONMENT, ours(), reader))


def refused(wanted: Reset, folder: Path, environment: dict[str, str] | None = None) -> str:
    with pytest.raises((ResetError, CommandError)) as caught:
        done(wanted, folder, environment=environment)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_the_reset_none_does_nothing(tmp_path: Path) -> None:
    assert done(NoReset(), tmp_path) == {}


def test_a_command_is_run_and_checked(tmp_path: Path) -> None:
    facts = done(CommandReset(command="echo 1 >made", check="test -s made"), tmp_path)
    assert (tmp_path / "made").read_text() == "1\n"
    assert isinstance(facts, dict)
    assert facts["checked"] is True
    assert 0 < facts["seconds"] < 60


def test_a_command_that_fails_times_out_or_is_not_confirmed_is_named_with_its_last_lines(tmp_path: Path) -> None:
    failed = CommandReset(command="echo one >&2; echo two >&2; exit 3")
    assert refused(failed, tmp_path) == "echo one >&2; echo two >&2; exit 3: exited with 3: one | two"
    assert refused(CommandReset(command="sleep 60", timeout_s=0.1), tmp_path) == "sleep 60: timed out after 0.1 s"
    unconfirmed = CommandReset(command="true", check="test -e made")
    assert refused(unconfirmed, tmp_path) == "test -e made: exited with 1"
    assert "No such file" in refused(CommandReset(command="true"), tmp_path / "none")


def test_without_systemd_a_service_is_refused_in_one_line(tmp_path: Path) -> None:
    said = refused(ServiceReset(unit="x.service"), tmp_path, {"PATH": str(tmp_path)})
    assert said == "systemctl is not on the PATH, but a reset of kind 'service' needs it"


CTL = """#!/bin/sh
case $1 in
show) cat state ;;
restart) test -z "$NEXT" || printf '%b' "$NEXT" >state ;;
esac
"""
UP = "ActiveState=active\\nMainPID=%d\\nActiveEnterTimestampMonotonic=%d\\nInvocationID=%s\\n"


@pytest.mark.parametrize(
    ("after", "why"),
    [
        ("", "x.service was not restarted: active since 100 us after boot"),
        (UP % (8, 200, "aa"), "x.service was not restarted: active since 200 us after boot"),
        ("ActiveState=failed\\n", "x.service is failed after its restart"),
        ("ActiveState=activating\\n", "x.service is activating after its restart"),
        (" ", "x.service is unknown after its restart"),
        (UP % (8, 200, "bb"), None),
    ],
)
def test_a_service_must_have_restarted_and_be_active(after: str, why: str | None, tmp_path: Path) -> None:
    """A stand-in reports states that systemd rarely reports; the real one restarts real units in the lab."""
    (tmp_path / "systemctl").write_text(CTL)
    (tmp_path / "systemctl").chmod(0o755)
    (tmp_path / "state").write_text((UP % (7, 100, "aa")).replace("\\n", "\n"))
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "NEXT": after}
    if why is not None:
        assert refused(ServiceReset(unit="x.service"), tmp_path, environment) == why
    else:
        facts = done(ServiceReset(unit="x.service"), tmp_path, environment=environment)
        assert facts == {"unit": "x.service", "main_pid": "8", "active_since_us": "200"}


def tree(root: Path, files: dict[str, str]) -> Reader:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return Reader(str(root))


VMSTAT = {"proc/vmstat": "drop_pagecache 4\ndrop_slab 2\n", "proc/meminfo": "MemFree: 1 kB\nCached:   900 kB\n"}


def test_caches_that_were_not_dropped_are_noticed(tmp_path: Path) -> None:
    """A recorded host takes the order and drops nothing."""
    reader = tree(tmp_path, {**VMSTAT, "proc/sys/vm/drop_caches": ""})
    with pytest.raises(ResetError, match="accepted the write, but the kernel dropped nothing"):
        on(reader, CachesReset())
    assert (tmp_path / "proc/sys/vm/drop_caches").read_text() == "3\n"


def test_if_dropping_caches_is_not_permitted_the_message_asks_for_root(tmp_path: Path) -> None:
    (tmp_path / "proc/sys/vm/drop_caches").mkdir(parents=True)
    with pytest.raises(ResetError, match=r"/proc/sys/vm/drop_caches: .*: dropping caches needs root"):
        on(tree(tmp_path, VMSTAT), CachesReset())


HOT = {
    "sys/class/thermal/thermal_zone0/temp": "41000",
    "sys/class/hwmon/hwmon2/temp1_input": "55500",
    "sys/class/hwmon/hwmon2/temp1_max": "99000",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "3000000",
    "sys/devices/system/cpu/cpufreq/policy1/scaling_cur_freq": "1000000",
}


def test_cooling_waits_for_the_hottest_sensor_and_the_slowest_cpu(tmp_path: Path) -> None:
    reader = tree(tmp_path, HOT)
    cool = on(reader, CoolDownReset(celsius=56, khz=1_000_000, timeout_s=0.1))
    assert (cool["celsius"], cool["khz"]) == (55.5, 1_000_000)
    with pytest.raises(ResetError, match=r"^still at 55\.5 degrees Celsius \(required: at most 50\) after 0\.1 s$"):
        on(reader, CoolDownReset(celsius=50, timeout_s=0.1))
    with pytest.raises(ResetError, match=r"^still at 1,000,000 kHz \(required: at least 2,000,000\) after 0\.1 s$"):
        on(reader, CoolDownReset(khz=2_000_000, timeout_s=0.1))


@pytest.mark.slow
def test_cooling_ends_when_the_host_has_cooled(tmp_path: Path) -> None:
    reader = tree(tmp_path, HOT)
    sensor = tmp_path / "sys/class/hwmon/hwmon2/temp1_input"
    begun = time.monotonic()
    with subprocess.Popen(["/bin/sh", "-c", f"sleep 1; echo 30000 >{sensor}.new; mv {sensor}.new {sensor}"]):
        facts = on(reader, CoolDownReset(celsius=45, timeout_s=60))
    assert facts["celsius"] == 41
    assert 0.3 <= facts["seconds"] <= time.monotonic() - begun


def test_without_a_sensor_or_a_driver_cooling_says_so(tmp_path: Path) -> None:
    with pytest.raises(ResetError, match="this host reports no temperature"):
        on(tree(tmp_path, {}), CoolDownReset(celsius=50))
    with pytest.raises(ResetError, match="this host reports no frequency"):
        on(tree(tmp_path, {}), CoolDownReset(khz=1))


@pytest.mark.parametrize("how", ["sleep 300 >/dev/null 2>&1 &", "setsid -f sleep 300 >/dev/null 2>&1"])
def test_processes_that_trials_left_behind_are_ended_and_those_of_setup_stay(how: str, tmp_path: Path) -> None:
    """Real daemons, found by their marks: the process that runs the tests is left alone."""
    mine, theirs = ours(f"{tmp_path}"), ours(f"{tmp_path} too")
    for environment in (mine.of_trial(3, 1, "a"), mine.of_step(process_tags.SETUP), theirs.of_trial(3, 1, "a")):
        subprocess.run(["/bin/sh", "-c", how], env={**ENVIRONMENT, **environment}, check=True)
    found = {mark: pid for pid in psutil.pids() if (mark := mine.tag_of(pid))}
    others = [pid for pid in psutil.pids() if theirs.tag_of(pid)]
    assert {(mark.run, mark.position, mark.step) for mark in found} == {(3, 1, ""), (None, None, process_tags.SETUP)}
    try:
        assert mine.end(lambda mark: mark.position is not None) == 1
        assert {mark.step for mark, pid in found.items() if alive(pid)} == {process_tags.SETUP}
        assert all(map(alive, others))
    finally:
        for pid in [*found.values(), *others]:
            if alive(pid):
                psutil.Process(pid).kill()


def test_a_study_with_fresh_processes_has_none_of_the_run_before(tmp_path: Path) -> None:
    """One trial leaves a daemon that has thrown away its environment; setup's server goes through all runs."""
    daemon = "env -i /usr/bin/setsid -f /bin/sh -c 'echo $$ >>daemons; exec sleep 299' >/dev/null 2>&1"
    count = "n=0; for p in $(cat daemons); do kill -0 $p 2>/dev/null && n=$((n+1)); done; echo $n"
    tests = {
        "leaves": f"{daemon}; until test $(wc -l <daemons) -gt $CBENCH_RUN; do sleep 0.01; done; {count}",
        "sees": f"kill -0 $(cat server) || exit 1; {count}",
    }
    head = "repetitions = 2\nsetup = 'touch daemons; sleep 298 >/dev/null 2>&1 & echo $! >server'\n"
    written(tmp_path, study(tests, f"{head}teardown = 'kill $(cat server)'", 'kind = "processes"'))
    finished = order("run", "s.toml", folder=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert not alive(int((tmp_path / "server").read_text()))
    assert [row[3] for row in rows(tmp_path / "s.db")] == [None] * 8
    assert [row[4] for row in rows(tmp_path / "s.db") if row[2] == 0] == [1.0] * 4  # never that of an earlier run too
    daemons = [int(each) for each in (tmp_path / "daemons").read_text().split()]
    assert [alive(each) for each in daemons] == [False, False, False, True]
    psutil.Process(daemons[-1]).kill()


def test_a_run_that_cannot_be_reset_is_skipped_with_its_reason_and_later_ones_continue(tmp_path: Path) -> None:
    flaky = "kind = 'command'\ncommand = 'echo x >>count; test $(wc -l <count) != 2'"
    written(tmp_path, study({"a": "echo 1"}, "repetitions = 2", flaky))
    finished = order("run", "s.toml", folder=tmp_path)
    reason = "not reset: echo x >>count; test $(wc -l <count) != 2: exited with 1"
    assert finished.returncode == 0
    assert f"cbench: run 2 is left out: {reason}\n" in finished.stderr
    assert "finished (1 run was left out); next: cbench order analyze s.db" in finished.stderr
    assert [row[0] for row in rows(tmp_path / "s.db")] == [0, 2, 3]
    assert reason in order("status", "s.db", folder=tmp_path).stdout


def test_a_study_whose_every_reset_failed_is_an_error(tmp_path: Path) -> None:
    written(tmp_path, study({"a": "echo 1"}, "repetitions = 1", "kind = 'command'\ncommand = 'false'"))
    finished = order("run", "s.toml", folder=tmp_path)
    assert finished.returncode == 2
    last = finished.stderr.splitlines()[-1]
    assert (
        last == "cbench: error: s.db: every run was left out, so nothing was measured: not reset: false: exited with 1"
    )


def test_a_reset_that_can_never_work_is_known_without_doing_it(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    bare, whole = tree(tmp_path / "bare", {}), tree(tmp_path / "whole", {**HOT, "proc/sys/vm/drop_caches": ""})
    never = {
        CoolDownReset(celsius=50): "this host reports no temperature (/sys/class/thermal, /sys/class/hwmon)",
        CoolDownReset(khz=1): "this host reports no frequency (/sys/devices/system/cpu/cpufreq: no cpufreq driver)",
        CachesReset(): "this kernel has no /proc/sys/vm/drop_caches",
    }
    for wanted, why in never.items():
        assert wanted.obstacle(ENVIRONMENT, bare) == why
        assert wanted.obstacle(ENVIRONMENT, whole) == ""
    assert (tmp_path / "whole/proc/sys/vm/drop_caches").read_text() == ""
    for wanted in (NoReset(), CommandReset(command="false"), ProcessesReset()):
        assert wanted.obstacle(ENVIRONMENT, bare) == ""


def test_dropping_caches_requires_write_permission() -> None:
    """As the user nobody if this is root, which no mode excludes."""
    with tempfile.TemporaryDirectory() as folder:
        reader = tree(Path(folder), {"proc/sys/vm/drop_caches": ""})
        Path(folder).chmod(0o755)
        Path(folder, "proc/sys/vm/drop_caches").chmod(0o444)
        pid = os.fork()
        if pid == 0:
            said = ""
            try:
                if os.geteuid() == 0:
                    os.setresuid(65534, 65534, 65534)
                said = CachesReset().obstacle(ENVIRONMENT, reader)
            finally:
                os._exit(said != "/proc/sys/vm/drop_caches is not writable: dropping caches needs root")
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_study_whose_reset_can_never_work_is_refused_before_it_begins(tmp_path: Path) -> None:
    wanted = {
        "service": "kind = 'service'\nunit = 'none-such.service'",
        "cool-down": "kind = 'cool-down'\ncelsius = 50",
    }
    why = {
        "service": "" if SYSTEMD_RUNNING.is_dir() else "the host was not booted by systemd",
        "cool-down": CoolDownReset(celsius=50).obstacle(ENVIRONMENT, Reader()),
    }
    for kind in [kind for kind in wanted if why[kind]]:
        path = written(
            tmp_path, study({"a": "touch ran; echo 1"}, "setup = 'touch ran'\nrepetitions = 1", wanted[kind])
        )
        finished = order("run", path, folder=tmp_path)
        said = f"cbench: error: {path}: a reset of kind {kind!r} cannot work here: {why[kind]}\n"
        assert (finished.returncode, finished.stderr) == (3, said)
        assert not (tmp_path / "ran").exists()
        assert not (tmp_path / "s.db").exists()
