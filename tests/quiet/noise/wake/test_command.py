"""`quiet noise --wake`: what it refuses, and one real measurement of a CPU of this host without privileges."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.quiet.commands import Quiet
from tests.quiet.noise.test_measure_and_judge import ONLINE, UNPRIVILEGED, is_error

WAKES = 200


@pytest.fixture
def mine() -> int:
    return max(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--period", "10us"), "--period 10us: must be from 50.0 us to 1.00 s"),
        (("--period", "2s"), "--period 2s: must be from 50.0 us to 1.00 s"),
        (("--period", "fast"), "--period 'fast': not a time"),
        (("--period", "500ms", "--duration", "0.2"), "--period 500ms: longer than the whole --duration of 0.2 s"),
        (("--duration", "0"), "--duration 0"),
        (("--stop-above", "50"), "--stop-above '50': not a time"),
        (("--max-latency", "0us"), "--max-latency '0us': not a time"),
        (("--save-trace", "x"), "--save-trace needs --stop-above"),
        (("--stop-above", "1ms", "--save-trace", "x", "--no-trace"), "omit --no-trace"),
        (("--stop-above", "1ms", "--save-trace", "none/x"), "--save-trace none/x: no directory none"),
        (("--fifo", "100"), "--fifo '100'"),
        (("--threshold", "1us"), "--threshold applies to gaps"),
        (("--max-gap", "1us"), "--max-gap applies to gaps; omit --wake or this option; --max-latency limits wake-ups"),
        (("--timeline", "x.html"), "--timeline applies to gaps"),
    ],
)
def test_an_invalid_value_is_one_line_that_names_the_option(
    quiet: Quiet, mine: int, options: tuple[str, ...], said: str
) -> None:
    is_error(quiet("noise", "--cpus", mine, "--wake", *options), 2, said)


@pytest.mark.parametrize("option", ["--period", "--max-latency", "--stop-above", "--save-trace"])
def test_a_wake_up_option_needs_wake(quiet: Quiet, mine: int, option: str) -> None:
    is_error(quiet("noise", "--cpus", mine, option, "1ms"), 2, f"{option} applies to wake-ups; add --wake")


@pytest.mark.parametrize(("cpus", "said"), [("", "lists no CPU"), ("x", "--cpus x"), ("65000", "no such CPU")])
def test_cpus_that_cannot_be_measured_are_reported_in_one_line(quiet: Quiet, cpus: str, said: str) -> None:
    is_error(quiet("noise", "--wake", "--cpus", cpus), 2, said)


def checked(shape: dict[str, Any], cpu: int) -> dict[str, Any]:
    """One CPU of a report, whose numbers agree with each other whatever else the machine did."""
    seen: dict[str, Any] = shape["cpus"][str(cpu)]
    assert seen["wakes"] + seen["missed"] <= WAKES
    assert seen["wakes"] == sum(count for _, count in seen["histogram_us"]) + seen["beyond"] > 0
    assert 0 < seen["min_ns"] <= seen["percentiles_ns"]["p50"] <= seen["percentiles_ns"]["p99.9"] <= seen["max_ns"]
    assert seen["worst"][0]["latency_ns"] == seen["max_ns"]
    assert len(seen["worst"]) == min(seen["wakes"], 16)
    return seen


@pytest.mark.slow
def test_a_run_without_privileges_reports_the_distribution_and_the_benefit_of_root(mine: int) -> None:
    command = [sys.executable, "-c", UNPRIVILEGED, "noise", "--wake", "--cpus", str(mine), "--json", "--fifo", "10"]
    done = subprocess.run([*command, "--duration", "0.2"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    shape = json.loads(done.stdout)
    seen = checked(shape, mine)
    assert all(each["parts"] == [] and each["phases_ns"] is None for each in seen["worst"])
    assert any("only the distribution is reported" in text for text in shape["limits"])
    assert any("not SCHED_FIFO" in text for text in seen["limits"])
    assert (shape["period_ns"], shape["stopped"], shape["exceeded"]) == (1_000_000, None, [])
    assert seen["timer_slack_ns"] == 1


@pytest.mark.slow
def test_all_cpus_can_be_measured_and_the_report_says_what_that_means(quiet: Quiet) -> None:
    done = quiet("noise", "--wake", "--cpus", ",".join(map(str, ONLINE)), "--duration", "0.2", "--no-trace", "--json")
    assert sorted(map(int, done.json["cpus"])) == ONLINE
    assert done.json["limits"][0].startswith("all CPUs are measured")
    assert done.json["limits"][1].startswith("kernel tracing was not requested")


@pytest.mark.slow
def test_an_impossible_limit_stops_at_the_first_wake_up_and_ends_with_1(
    quiet: Quiet, mine: int, tmp_path: Path
) -> None:
    file = tmp_path / "trace.txt"
    done = quiet(
        *("noise", "--wake", "--cpus", mine, "--duration", "3600", "--stop-above", "1ns", "--save-trace", file),
        "--json",
    )
    assert done.code == 1
    assert done.json["cpus"][str(mine)]["wakes"] == 1
    assert done.json["stopped"]["cpu"] == mine
    assert [each["budget"] for each in done.json["exceeded"]] == ["stop-above"]
    assert file.read_text().startswith(f"CPU {mine}: a wake-up ")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_early_with_the_results_so_far(mine: int, number: int) -> None:
    command = [sys.executable, "-m", "quiet", "noise", "--wake", "--cpus", str(mine), "--duration", "3600", "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child = None
    limit = time.monotonic() + 300
    while not child and time.monotonic() < limit:  # its thread is there and has slept for some periods
        kids = psutil.Process(process.pid).children()
        child = next((kid for kid in kids if kid.name() == "quiet-wake" and kid.num_ctx_switches()[0] > 200), None)
        time.sleep(0.02)
    process.send_signal(number)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
    assert any("ended early by SIG" in text for text in json.loads(out)["limits"])
    assert child
    assert not child.is_running()
