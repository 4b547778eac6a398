"""The real command: refusals, reports, and that nothing is left behind when it is ended."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.noise import detector
from quiet.settings import journal
from tests.quiet.commands import Done, Quiet
from tests.quiet.kernels import tree

ONLINE = sorted(Facts(Reader()).online)
SHORT = ("--duration", "0.2")
# Everything is imported while it can be read; then the rights go, and the command runs without them.
UNPRIVILEGED = """
import importlib, os, pkgutil, resource, sys
import quiet
for found in pkgutil.walk_packages(quiet.__path__, "quiet."):
    if not found.name.endswith(("__main__", "_build")):
        importlib.import_module(found.name)
for limit in (resource.RLIMIT_MEMLOCK, resource.RLIMIT_RTPRIO):
    resource.setrlimit(limit, (0, 0))
if os.geteuid() == 0:
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
from quiet.cli.start import main
main()
"""


def is_error(done: Done, code: int, said: str) -> None:
    assert done.code == code
    assert done.err.startswith("quiet: error: ")
    assert done.err.count("\n") == 1
    assert said in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("cpus", "code", "said"),
    [
        ("65000", 2, "--cpus 65000: no such CPU"),
        ("", 2, "--cpus lists no CPU"),
        ("abc", 2, "--cpus abc: 'abc' is not a CPU list"),
        ("3-1", 2, "--cpus 3-1"),
        ("1,,2", 2, "--cpus 1,,2"),
        ("-1", 2, "--cpus"),
    ],
)
def test_cpus_that_cannot_be_watched_are_reported_in_one_line(quiet: Quiet, cpus: str, code: int, said: str) -> None:
    is_error(quiet("noise", "--cpus", cpus, *SHORT), code, said)


ALL = ",".join(map(str, ONLINE))


def test_all_cpus_at_once_are_refused_with_a_real_time_priority_only(quiet: Quiet) -> None:
    is_error(quiet("noise", "--cpus", ALL, *SHORT, "--fifo", "50"), 3, "leave out at least one")


@pytest.mark.slow
def test_all_cpus_at_once_can_be_measured_and_the_report_says_what_that_means(quiet: Quiet) -> None:
    report = quiet("noise", "--cpus", ALL, "--duration", "0.1", "--threshold", "10us", "--json").json
    assert sorted(map(int, report["cpus"])) == sorted(ONLINE)
    assert report["limits"][0].startswith("all CPUs are measured")


@pytest.mark.slow
def test_a_closed_pipe_loses_no_timeline(tmp_path: Path) -> None:
    file = tmp_path / "gaps.html"
    command = [sys.executable, "-m", "quiet", "noise", "--cpus", str(ONLINE[-1]), "--duration", "0.1"]
    process = subprocess.Popen([*command, "--timeline", str(file)], stdout=subprocess.PIPE)
    assert process.stdout
    process.stdout.close()
    assert process.wait() == 141
    assert "</html>" in file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("--duration", ("0", "abc", "-1", "0.01", "nan", "inf", "", "8000000", "5 minutes")),
        ("--threshold", ("0", "abc", "2s", "100", "", "-5ns")),
        ("--max-lost", ("200", "abc", "-0.1%", "nan", "")),
        ("--max-gap", ("abc", "0us", "100", "")),
        ("--max-interrupts", ("-1", "nan", "inf", "abc", "")),
        ("--fifo", ("0", "00", "100", "x", "-1", "1.5", "")),
    ],
)
def test_a_wrong_value_is_reported_in_one_line_that_names_its_option(
    quiet: Quiet, option: str, values: tuple[str, ...]
) -> None:
    for value in values:
        is_error(quiet("noise", "--cpus", ONLINE[-1], option, value), 2, option)


@pytest.mark.slow
def test_without_cpus_the_isolated_ones_are_measured_or_the_last_of_this_process(
    quiet: Quiet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured() -> list[str]:
        done = quiet("noise", "--duration", "0.1", "--no-trace", "--json")
        assert done.code == 0, done.err
        return list(done.json["cpus"])

    mine = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(journal, "isolated_cpus", frozenset)
    assert measured() == [str(mine[-1])]
    monkeypatch.setattr(journal, "isolated_cpus", lambda: frozenset(mine[:1]))
    assert measured() == [str(mine[0])]


@pytest.mark.slow
@pytest.mark.skipif(len(ONLINE) < 2, reason="on a single CPU everything is measured")
def test_a_command_that_may_use_no_other_cpu_interrupts_the_measured_one_itself(quiet: Quiet) -> None:
    args = ("noise", "--cpus", ONLINE[-1], "--duration", "0.1", "--no-trace", "--json")
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {ONLINE[-1]})
    try:
        for more in ((), ("--wake",)):
            assert quiet(*args, *more).json["limits"][0].startswith("this command may use no other CPU")
        is_error(quiet(*args, "--fifo", "50"), 3, "this command may use no others")
    finally:
        os.sched_setaffinity(0, before)


def test_a_timeline_that_has_no_place_is_refused_before_anything_is_measured(quiet: Quiet, tmp_path: Path) -> None:
    places = (
        (tmp_path / "none" / "x.html", "no directory"),
        (tmp_path, "is a directory"),
        ("", "the file name is empty"),
    )
    for file, said in places:
        is_error(quiet("noise", "--cpus", ONLINE[-1], "--duration", "3600", "--timeline", file), 2, said)
    assert list(tmp_path.iterdir()) == []


def test_a_recorded_machine_cannot_be_measured(quiet: Quiet, tmp_path: Path) -> None:
    root = tree(tmp_path / "machine")
    is_error(quiet("verify", "--root", root, "--duration", "5"), 2, "--duration")
    is_error(quiet("verify", "--root", root, "--max-gap", "abc"), 2, "--max-gap")
    is_error(quiet("verify", "--root", root, "--duration", "abc"), 2, "--duration")
    assert quiet("verify", "--root", root, "--duration", "0").out == quiet("verify", "--root", root).out != ""


@pytest.fixture(scope="module")
def shape(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one real measurement reports to programs; its timeline is beside it."""
    if len(ONLINE) < 2:
        pytest.skip("NOT RUN: watching a CPU needs a second one for the rest of the system")
    file = tmp_path_factory.mktemp("noise") / "timeline.html"
    command = [sys.executable, "-m", "quiet", "noise", "--cpus", str(ONLINE[-1]), "--json"]
    done = subprocess.run(
        [*command, "--duration", "0.5", "--threshold", "1us", "--timeline", str(file)], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout) | {"file": file}


@pytest.mark.slow
def test_the_shape_is_the_promised_one(shape: Any) -> None:
    assert 0.499 <= shape["duration_s"] < 2  # as it really was: the last gap counts whole
    assert 0 < shape["detector"]["loop_ns"] < shape["detector"]["threshold_ns"]
    assert list(shape["cpus"]) == [str(ONLINE[-1])]
    one = shape["cpus"][str(ONLINE[-1])]
    assert {"gaps", "lost_pct", "max_ns", "causes", "unattributed"} <= set(one)
    for cause in one["causes"]:
        assert {"cause", "kind", "count", "total_ns", "max_ns", "remedy"} <= set(cause)
        assert cause["remedy"]
        assert cause["max_ns"] <= cause["total_ns"]


def test_the_causes_add_up_to_the_lost_time(shape: Any) -> None:
    one = shape["cpus"][str(ONLINE[-1])]
    assert sum(count for _, count in one["histogram_ns"]) == one["gaps"] == one["kept"]
    least = sum(low * count for low, count in one["histogram_ns"])
    assert least * 0.98 <= sum(cause["total_ns"] for cause in one["causes"]) <= least * 17 / 16 * 1.02


def test_the_timeline_is_drawn_whole(shape: Any) -> None:
    text = shape["file"].read_text()
    assert text.startswith("<!doctype html>")
    assert text.rstrip().endswith("</html>")
    assert [path.name for path in shape["file"].parent.iterdir()] == ["timeline.html"]


@pytest.mark.slow
def test_a_budget_decides_the_exit_code(quiet: Quiet, cpu: int) -> None:
    args = ("noise", "--cpus", cpu, *SHORT)
    done = quiet(*args, "--max-gap", "1ns", "--json")
    assert done.code == 1
    assert {each["budget"] for each in done.json["exceeded"]} == {"max-gap"}
    done = quiet(*args, "--max-lost", "100%", "--max-interrupts", "1e9")
    assert done.code == 0
    assert "within the budgets" in done.out


@pytest.mark.slow
def test_a_full_buffer_is_counted_and_reported(quiet: Quiet, cpu: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detector, "CAPACITY", 2)
    args = ("noise", "--cpus", cpu, *SHORT)
    one = quiet(*args, "--json").json["cpus"][str(cpu)]
    assert one["kept"] == 2 < one["gaps"] == sum(count for _, count in one["histogram_ns"])
    assert re.search(r"buffer was full.* 2 ", quiet(*args).out)


@pytest.mark.slow
def test_afterwards_this_process_has_its_original_cpus(quiet: Quiet, cpu: int) -> None:
    before, handler = os.sched_getaffinity(0), signal.getsignal(signal.SIGINT)
    assert quiet("noise", "--cpus", cpu, "--duration", "0.1", "--no-trace").code == 0
    assert os.sched_getaffinity(0) == before
    assert signal.getsignal(signal.SIGINT) == handler


@pytest.mark.slow
def test_without_any_privileges_it_measures_and_reports_the_limitations(cpu: int) -> None:
    command = [sys.executable, "-c", UNPRIVILEGED, "noise", "--cpus", str(cpu), *SHORT, "--fifo", "50", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert any("tracing" in text for text in found["limits"])
    limits = " ".join(found["cpus"][str(cpu)]["limits"])
    assert "RLIMIT_MEMLOCK" in limits
    assert "RLIMIT_RTPRIO" in limits
    assert found["cpus"][str(cpu)]["gaps"] >= 0


def started(cpu: int, *, ignoring: bool = False, duration: str = "600") -> tuple[subprocess.Popen[str], psutil.Process]:
    """A long measurement, as a terminal starts it (or nohup: `ignoring`), and its detector in its place."""
    # whoever runs the tests may ignore signals, and what is ignored is inherited
    signals = ["--default-signal=INT,TERM,HUP", *(["--ignore-signal=HUP"] if ignoring else [])]
    command = subprocess.Popen(
        ["env", *signals, sys.executable, "-m", "quiet", "noise", "--cpus", str(cpu), "--duration", duration],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    limit = time.monotonic() + 300
    while time.monotonic() < limit and command.poll() is None:
        for child in psutil.Process(command.pid).children():
            if child.cpu_affinity() == [cpu]:
                return command, child
        time.sleep(0.02)
    command.kill()
    raise AssertionError(f"no detector appeared: {command.communicate()}")


def gone(process: psutil.Process) -> bool:
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        try:
            if not process.is_running() or process.status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:  # it has gone between the two looks
            return True
        time.sleep(0.02)
    return False


def nobody_of(group: int) -> bool:
    """Whether a process group has no process left; one that the kernel ends with its parent takes a moment."""
    limit = time.monotonic() + 120
    while time.monotonic() < limit:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_in_one_line_and_leaves_no_process(cpu: int, sent: signal.Signals) -> None:
    command, child = started(cpu)
    if sent == signal.SIGINT:
        os.killpg(command.pid, sent)  # the terminal's Ctrl-C goes to all of them
    else:
        command.send_signal(sent)
    out, err = command.communicate(timeout=300)
    assert (command.returncode, out) == (128 + sent, "")
    assert err.startswith("quiet: error: ")
    assert err.count("\n") == 1
    assert sent.name in err
    assert gone(child)
    assert nobody_of(command.pid)


@pytest.mark.slow
def test_repeated_ctrl_c_ends_in_one_line_too(cpu: int) -> None:
    command, _ = started(cpu)
    for _ in range(20):
        if command.poll() is None:
            os.killpg(command.pid, signal.SIGINT)
        time.sleep(0.005)
    _, err = command.communicate(timeout=300)
    assert command.returncode == 130
    assert err.count("\n") == 1
    assert nobody_of(command.pid)


@pytest.mark.slow
def test_when_the_command_is_killed_its_detector_ends(cpu: int) -> None:
    command, child = started(cpu)
    limit = time.monotonic() + 300
    while child.cpu_times().user < 0.2 and time.monotonic() < limit:
        time.sleep(0.02)  # until it watches, and no longer waits for the start signal
    command.kill()
    command.communicate(timeout=300)
    assert gone(child)


def test_a_detector_that_is_killed_is_reported_in_one_line_with_exit_2(cpu: int) -> None:
    command, child = started(cpu)
    child.kill()
    out, err = command.communicate(timeout=300)
    assert (command.returncode, out) == (2, "")
    assert err.startswith("quiet: error: the detector on CPU")
    assert err.count("\n") == 1
    assert nobody_of(command.pid)


@pytest.mark.slow
def test_a_threshold_that_each_turn_of_the_loop_exceeds_is_refused(quiet: Quiet, cpu: int) -> None:
    done = quiet("noise", "--cpus", cpu, *SHORT, "--threshold", "1ns")
    assert done.code == 2
    assert re.search(
        r"--threshold 1ns: shorter than two iterations of the loop on CPU \d+; write \d+ns or more", done.err
    )


@pytest.mark.parametrize("option", ["--timeline", "--max-gap", "--threshold"])
def test_measurement_options_are_refused_without_a_measurement(quiet: Quiet, tmp_path: Path, option: str) -> None:
    value = str(tmp_path / "x.html") if option == "--timeline" else "5us"
    done = quiet("verify", "--duration", "0", option, value)
    assert done.code == 2
    assert f"{option}: needs a measurement" in done.err


@pytest.mark.slow
def test_a_closed_output_is_not_a_crash(cpu: int) -> None:
    script = f"{sys.executable} -m quiet noise --cpus {cpu} --duration 0.1 --no-trace >&-"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_a_hangup_that_is_ignored_stays_ignored(cpu: int) -> None:
    command, _ = started(cpu, ignoring=True, duration="2")
    command.send_signal(signal.SIGHUP)
    out, err = command.communicate(timeout=300)
    assert (command.returncode, err) == (0, "")
    assert f"CPU {cpu}" in out


def test_a_kernel_parameter_that_is_a_remedy_is_explained_too(quiet: Quiet) -> None:
    assert "scheduler's tick" in quiet("explain", "nohz_full").out
    assert any("callbacks" in text for text in quiet("explain", "rcu_nocbs", "--json").json["stops"])
    assert "unknown knob 'nohzz'" in quiet("explain", "nohzz").err
