"""`cbench run -- CMD` as its user sees it."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from cbench.external.measure import CommandSeries, Measured
from cbench.external.options import ExternalCommand
from cbench.external.result import CommandResult, MedianEstimate, commands_result
from cbench.external.table import command_lines, duration, histogram, naming_line, spawn_line
from cbench.model import Counter, Trial, TrialCause
from tests.cbench.running import CBENCH, cbench, comes, error_line

QUICK = ("run", "--quick", "--counter", "wall")


@pytest.mark.slow
def test_a_command_is_measured_in_at_most_thirteen_lines() -> None:
    done = cbench(*QUICK, "--", "true", "-x")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "true -x"
    assert "median and 95 % interval" in lines[1]
    assert any("disturbed: " in line for line in lines)
    assert any(line.startswith("an empty program takes ") for line in lines)
    assert len(lines) <= 13


@pytest.mark.slow
def test_the_json_has_the_keys_of_a_run_and_the_headline() -> None:
    done = cbench(*QUICK, "--json", "--trials", "6", "--", "true")
    content = json.loads(done.stdout)
    assert {"counter", "host", "results"} <= set(content)
    assert content["spawn"]["unit"] == "ns"
    (result,) = content["results"]
    assert list(result["headline"]) == ["value", "unit", "interval", "how"]
    assert {"workload", "trials", "min", "range", "polluted", "causes", "clean", "warmup", "settled"} <= set(result)
    assert len(result["trials"]) == 6
    assert sorted(result["trials"])[0] == result["min"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("hash", "--", "true"), "workloads and commands cannot be measured together"),
        (("--", "no-such-program"), "no such program"),
        (("--vary", "all", "--", "true"), "--vary is for workloads"),
        (("--shell", "hash"), "--shell is for a command: write the command after --"),
        ((), "nothing to measure: name a workload from `cbench list`, or a command after --"),
        (("--", "false"), "false: exited with 1 (--ignore-failure measures it anyway)"),
    ],
)
def test_wrong_usage_is_reported_in_one_line_with_exit_code_2(arguments: tuple[str, ...], why: str) -> None:
    done = cbench("run", *arguments)
    assert done.returncode == 2
    assert why in error_line(done)


@pytest.mark.slow
def test_words_of_the_command_may_be_digits_of_any_script() -> None:
    assert cbench(*QUICK, "--trials", "1", "--", "true", "-\u0661").returncode == 0


@pytest.mark.slow
def test_ctrl_c_ends_the_command_and_says_that_nothing_was_kept(tmp_path: Path) -> None:
    started = tmp_path / "started"
    command = [*CBENCH, *QUICK, "--shell", "--command", f"echo $$ > {started}; exec sleep 1000"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert comes(lambda: started.exists() and started.read_text().strip())
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT
    assert "interrupted, nothing was kept" in errors
    assert comes(lambda: not Path("/proc", started.read_text().strip()).exists())


@pytest.mark.slow
def test_a_stored_command_is_compared_process_by_process_and_exported(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    commands = ("--command", "true", "--command", "sleep 0.2")
    assert cbench(*QUICK, "--trials", "8", "-o", str(path), *commands).returncode == 0
    done = cbench("compare", f"{path}:true", f"{path}:sleep 0.2", "--json")
    assert done.returncode == 1, done.stderr
    (row,) = json.loads(done.stdout)["comparisons"]
    assert row["a"]["processes"] == row["b"]["processes"] == 8
    assert row["outcome"] == "higher"
    done = cbench("export", str(path), "--format", "hyperfine")
    assert [each["command"] for each in json.loads(done.stdout)["results"]] == ["true", "sleep 0.2"]


def result_of(*polluted: bool) -> CommandResult:
    counts = {"user_us": 1, "system_us": 1}
    causes = {True: (TrialCause("migration"),), False: ()}
    trials = [Trial(10**6, 0, counts=counts, causes=causes[each]) for each in polluted]
    series = CommandSeries(ExternalCommand("true", "", ("true",)), trials=trials)
    counter = Counter("wall", "ns", True, "")
    return commands_result(Measured((series,), counter, frozenset({0}), False, frozenset(), (), "")).results[0]


def test_the_counts_beside_causes_are_trials() -> None:
    assert "disturbed: 2 of 3 trials (trials by cause: migration 2)" in command_lines(result_of(True, True, False))


def test_the_median_of_fewer_than_five_undisturbed_trials_is_omitted() -> None:
    few, enough = (command_lines(result_of(True, *[False] * count)) for count in (4, 5))
    assert not any(line.startswith("undisturbed: ") for line in few)
    assert "undisturbed: 1 ms (too few values for an interval), 5 trials" in enough


def test_the_share_of_an_empty_program_is_omitted_if_its_times_vary() -> None:
    steady, varied = (MedianEstimate(2e5, "ns", (1.5e5, high), "") for high in (2.5e5, 3e6))
    assert spawn_line(steady, 4e6) == "an empty program takes 200 µs (150 µs to 250 µs): 5 % of the fastest command"
    assert spawn_line(varied, 4e6) == "an empty program takes 200 µs (150 µs to 3 ms)"


def test_the_command_that_names_tasks_is_shown_unless_the_program_is_gone() -> None:
    assert naming_line(["true", "a b"]).endswith(": `quiet why -- true 'a b'` names the tasks")
    assert naming_line(["/gone/program"]).endswith(": `quiet why -- CMD` names the tasks")


def test_durations_have_four_digits_and_a_unit() -> None:
    assert [duration(ns) for ns in (5, 1234.56, 5_123_456, 2e9, 4e12)] == [
        "5 ns",
        "1.235 µs",
        "5.123 ms",
        "2 s",
        "4,000 s",
    ]


def test_the_histogram_is_one_line_even_for_equal_values() -> None:
    assert histogram((5000, 5000)).startswith("5 µs |█")
    line = histogram(tuple(range(1000, 2000)) + (90_000,) * 3)
    assert (line.startswith("1 µs |") and ", 21 above" in line) or "above" in line
    assert "\n" not in line
