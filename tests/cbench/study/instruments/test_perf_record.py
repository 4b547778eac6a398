"""A command under `perf record`, and the counters that perf_event gives: its readings, and unavailable counters."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from cbench.study import model
from cbench.study.config import parse
from cbench.study.instruments import perf_record, perf_stat
from cbench.study.instruments.instrument import Sampling
from cbench.study.instruments.perf_data import Samples
from cbench.study.instruments.perf_record import PerfRecording
from cbench.study.instruments.perf_stat import Counting
from cbench.study.instruments.registry import BY_SOURCE
from cbench.study.model import Metric
from cbench.study.process.run_command import execute
from cbench.study.trial import command
from quiet.errors import UsageError
from tests.cbench.running import queued
from tests.cbench.study.instruments.perf import BUSY, EXCLUDE_KERNEL, NEEDS_PERF, file, record

ENVIRONMENT = {"PATH": os.environ["PATH"]}
STUDY = '[study]\nrepetitions = 1\n[[test]]\nname = "a"\ncommand = "true"\n'


@pytest.mark.parametrize(
    ("detail", "made"),
    [
        ("", Sampling("")),
        ("none", Sampling("none")),
        ("fp", Sampling("fp", "cpu-clock", 1000, None)),
        ("dwarf,hz=99", Sampling("dwarf", "cpu-clock", 99, None)),
        ("fp,event=cycles:u,period=1000000", Sampling("fp", "cycles:u", None, 1_000_000)),
        ("event=task-clock", Sampling("", "task-clock", 1000, None)),
    ],
)
def test_how_to_sample_is_read_from_a_few_words(detail: str, made: Sampling) -> None:
    assert perf_record.parse(detail) == made


@pytest.mark.parametrize("detail", ["x", "fp,dwarf", "hz=0", "hz=1,period=2", "event=", "event=-a", "period=x", "fp,"])
def test_other_words_are_refused_with_the_line_and_the_key(detail: str) -> None:
    with pytest.raises(UsageError, match=rf"^s\.toml:6: test\[1\]\.read: 'samples:{re.escape(detail)}': "):
        parse(f'{STUDY}read = "samples:{detail}"\n', "s.toml", "/")


def test_a_test_is_sampled_in_one_way_for_all_of_its_metrics() -> None:
    metric = '[[test.metric]]\nname = "{}"\nread = "{}"\n'
    text = STUDY + metric.format("wall", "wall") + metric.format("n", "samples:fp,hz=50")
    assert parse(text, "s.toml", "/").tests[0].sampling == Sampling("fp", "cpu-clock", 50, None)
    assert parse(STUDY + metric.format("n", "samples"), "s.toml", "/").tests[0].sampling == Sampling()
    with pytest.raises(UsageError, match="is sampled in two ways: write the same samples:HOW in all metrics"):
        parse(text + metric.format("m", "samples:dwarf"), "s.toml", "/")


def test_units_of_instruments_are_known() -> None:
    for name, unit in (("task-clock", "s"), ("perf-elapsed", "s"), ("cycles", "cycles"), ("samples:fp", "samples")):
        assert parse(f'{STUDY}read = "{name}"\n', "s.toml", "/").tests[0].metrics[0].unit == unit


@pytest.mark.slow
@NEEDS_PERF
@pytest.mark.parametrize("graph", ["none", "fp", "dwarf"])
def test_the_number_of_samples_is_about_the_frequency(graph: str, tmp_path: Path) -> None:
    metrics = (Metric("n", "samples"), Metric("used", "cpu-clock"))
    longer = BUSY.replace("100000", "600000")  # perf's own start counts too, and is not sampled
    test = model.Test("a", longer, metrics=metrics, sampling=Sampling(graph))
    made = command(test, 0, 0, 0, study_folder=str(tmp_path), environment=ENVIRONMENT)
    assert made.failure is None
    assert 0.5 <= made.values["n"][0] / (made.values["used"][0] * 1000) <= 1.05
    assert made.facts["samples"]["samples"] == made.values["n"][0]
    assert list(tmp_path.iterdir()) == []  # perf's file is gone


@pytest.mark.slow
@NEEDS_PERF
def test_perf_record_preserves_the_exit_code_of_a_command(tmp_path: Path) -> None:
    done = execute("echo 5; exit 3", str(tmp_path), ENVIRONMENT, 60, [PerfRecording(Sampling())])
    assert (done.code, done.output) == (3, b"5\n")
    late = execute("sleep 60", str(tmp_path), ENVIRONMENT, 1.0, [PerfRecording(Sampling())])
    assert late.code is None


@pytest.mark.slow
@NEEDS_PERF
def test_a_clock_that_perf_takes_in_place_of_an_event_is_not_a_count_of_it(tmp_path: Path) -> None:
    """Without a PMU, perf does so silently."""
    made = file(tmp_path / "p", record(9))
    assert isinstance(perf_record.counted(Sampling(), made), Samples)
    assert str(perf_record.counted(Sampling(event="cycles"), made)).startswith("cycles cannot be sampled here")
    try:
        perf_stat.check("cycles")
    except UsageError:
        assert "cannot be sampled" in perf_record.obstacle(Sampling(event="cycles"))


def test_samples_of_user_mode_alone_exclude_the_kernel(tmp_path: Path) -> None:
    """Without permission to observe the kernel, perf silently returns them."""
    made = file(tmp_path / "p", record(9), flags=EXCLUDE_KERNEL)
    said = "cpu-clock: the kernel may not be sampled without root; event=cpu-clock:u samples only user mode"
    assert perf_record.counted(Sampling(), made) == said
    assert isinstance(perf_record.counted(Sampling(event="cpu-clock:u"), made), Samples)


@pytest.mark.slow
@NEEDS_PERF
def test_user_mode_alone_is_sampled_on_request(tmp_path: Path) -> None:
    work = f"dd if=/dev/zero of=/dev/null bs=1 count=3000000 2>/dev/null; {BUSY}"
    counts = []
    for event in ("cpu-clock", "cpu-clock:u"):
        done = execute(work, str(tmp_path), ENVIRONMENT, 60, [PerfRecording(Sampling(event=event))])
        reading = done.readings["samples"]
        assert reading.facts["samples"]["user_only"] == (event == "cpu-clock:u")
        assert reading.value is not None
        counts.append(reading.value)
    assert counts[1] < 0.9 * counts[0]


def test_without_perf_a_study_that_samples_is_refused_in_one_line() -> None:
    said = perf_record.obstacle(Sampling(), "/nowhere")
    assert said == "perf is not installed (Debian: apt install linux-perf)"


@NEEDS_PERF
def test_a_refusal_of_perf_is_reported_in_its_words() -> None:
    assert "'nonsense'" in perf_record.obstacle(Sampling(event="nonsense"))
    most = int(Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text())
    if most < perf_record.MOST_HZ:
        said = perf_record.obstacle(Sampling(hz=most + 1))
        assert said == f"hz={most + 1}: the kernel permits at most {most} (sysctl kernel.perf_event_max_sample_rate)"


def test_samples_of_a_command_that_was_not_sampled_are_not_a_number(tmp_path: Path) -> None:
    made = command(
        model.Test("a", "true", metrics=(Metric("n", "samples"),)),
        *(0, 0, 0),
        study_folder=str(tmp_path),
        environment=ENVIRONMENT,
    )
    assert (made.values, made.failure) == ({}, "samples: was not sampled")


def taken_s() -> float:
    """What interrupts and the hypervisor have taken of all CPUs: a part of the clocks, of a task's CPU time only here
    and there.
    """
    ticks = [int(each) for each in Path("/proc/stat").read_text().splitlines()[0].split()[6:9]]
    return (sum(ticks) + len(ticks)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_clocks_count_only_the_command() -> None:
    before = taken_s()
    done = execute(f"{BUSY}; ({BUSY})", "/", ENVIRONMENT, 60, [Counting("task-clock"), Counting("cpu-clock")])
    task, cpu = (BY_SOURCE[name].read("", done, "/")[0] for name in ("task-clock", "cpu-clock"))
    used, apart = done.user_s + done.sys_s, taken_s() - before
    assert task == pytest.approx(cpu, rel=0.05)
    assert 0.9 * used < task < 1.1 * used + apart
    idle = execute("sleep 0.3", "/", ENVIRONMENT, 60, [Counting("task-clock")])
    assert BY_SOURCE["task-clock"].read("", idle, "/")[0] < 0.1


@pytest.mark.slow
def test_elapsed_time_begins_with_the_command_and_ends_with_it() -> None:
    before = queued()
    done = execute("sleep 0.3", "/", ENVIRONMENT, 60)
    late = queued() - before  # the command may run before this thread, which starts it and reads the clock, runs again
    elapsed = BY_SOURCE["perf-elapsed"].read("", done, "/")[0]
    assert 0.3 - late <= elapsed <= done.wall_s
    assert done.wall_s - elapsed < 0.2 + late


@NEEDS_PERF
def test_our_counts_agree_with_perf_stat(tmp_path: Path) -> None:
    """Of one execution: perf counts the command, we count the same command and perf's own start around it."""
    events = ("task-clock", "cpu-clock")
    perf = f"LC_ALL=C perf stat -x, -e {','.join(events)},duration_time -o {tmp_path}/perf --"
    none = execute(f"{perf} true", "/", ENVIRONMENT, 60, [Counting(name) for name in events])
    ours = execute(f"{perf} sh -c {shlex.quote(BUSY)}", "/", ENVIRONMENT, 60, [Counting(name) for name in events])
    lines = [line.split(",") for line in (tmp_path / "perf").read_text().splitlines() if line and line[0] != "#"]
    theirs = {fields[2].split(":")[0]: float(fields[0]) for fields in lines}
    for name in events:
        start, whole = (BY_SOURCE[name].read("", done, "/")[0] for done in (none, ours))
        assert theirs[name] / 1e3 <= whole <= theirs[name] / 1e3 + 3 * start
    # perf reads the clock after it has started the command, which may run before perf does again
    assert ours.wall_s >= max(theirs["duration_time"] / 1e9, theirs["task-clock"] / 1e3)


@NEEDS_PERF
def test_cycles_are_those_of_perf_stat_where_there_is_a_pmu() -> None:
    try:
        perf_stat.check("cycles:u")
    except UsageError as error:
        pytest.skip(str(error))
    counted = execute(BUSY, "/", ENVIRONMENT, 60, [Counting("cycles:u")]).readings["cycles:u"].value
    stat = ["perf", "stat", "-x,", "-e", "cycles:u", "--", "/bin/sh", "-c", BUSY]
    done = subprocess.run(stat, capture_output=True, text=True, env={**ENVIRONMENT, "LC_ALL": "C"}, check=True)
    assert int(counted) == pytest.approx(float(done.stderr.split(",")[0]), rel=0.1)


@pytest.mark.slow
@NEEDS_PERF
def test_perf_stat_within_a_trial_agrees_to_a_share_of_a_percent() -> None:
    """Nested: our counters have the shell, perf and the command; perf's has the command alone, so it is lower."""
    loop = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"
    inner = f"perf stat -x, -e task-clock -o /dev/stdout -- /bin/sh -c '{loop}'"
    done = execute(inner, "/", {**ENVIRONMENT, "LC_ALL": "C"}, 60, [Counting("task-clock")])
    line = next(line for line in done.output.decode().splitlines() if "task-clock" in line)
    ours, theirs = BY_SOURCE["task-clock"].read("", done, "/")[0], float(line.split(",")[0]) / 1e3
    assert theirs < ours < theirs + 0.2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to drop to a user with fewer rights")
def test_clocks_are_available_without_permission_to_count_the_kernel() -> None:
    limit = int(Path("/proc/sys/kernel/perf_event_paranoid").read_text())
    if limit > 2:
        pytest.skip(f"kernel.perf_event_paranoid is {limit}: nobody may count anything")
    pid = os.fork()
    if pid == 0:  # everything is imported: as nobody the files here may not be readable
        status = 1
        try:
            os.setgid(65534)
            os.setuid(65534)
            done = execute(BUSY, "/", ENVIRONMENT, 60, [Counting("task-clock"), Counting("cpu-clock")])
            used = done.user_s + done.sys_s
            status = int(any(not 0.8 * used < (each.value or 0) / 1e9 < 1.2 * used for each in done.readings.values()))
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
