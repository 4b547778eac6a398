"""Which instrument is at fault: none where all work, and the spoiled one where one is spoiled."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from cbench.validate.series import ValidationSeries
from tests.cbench.validate.made import N, Spoil, validation

Made = dict[tuple[str, str], ValidationSeries]


def scaled(workload: str, metric: str, factor: float, runs: range = range(N), kind: str = "") -> Spoil:
    def spoil(series: Made) -> None:
        row = series[workload, kind].values[metric]
        for run in runs:
            row[run] *= factor

    return spoil


@pytest.mark.parametrize("seed", range(5))
def test_instruments_that_work_are_not_at_fault(seed: int) -> None:
    made = validation(seed=seed)
    assert made["at_fault"] == []
    assert made["verdict"][0].startswith("No instrument is at fault: all ")
    assert not [each for each in made["findings"] if each["holds"] is False]


@pytest.mark.parametrize(
    ("workload", "kind", "metric", "factor", "runs", "at_fault", "words"),
    [
        ("perfect", "", "cpu-clock", 0.2, range(3, 4), ["cpu-clock"], "does not drop"),
        ("copy", "samples:fp", "samples", 0.1, range(9, 12), ["samples:fp"], "does not drop"),
        ("aliquot", "", "task-clock", 3.0, range(N), ["cpu-clock", "task-clock", "user + sys"], "is not above elapsed"),
        ("aliquot", "", "user", 0.8, range(N), ["cpu-clock", "user + sys"], "add up to cpu-clock"),
        ("copy", "", "wall", 1.3, range(N), ["perf-elapsed", "wall"], "elapsed times of all instruments agree"),
        ("etalon", "", "perf-elapsed", 0.99, range(N), ["perf-elapsed"], "takes as long as it is set to wait"),
        ("aliquot", "samples:fp", "samples", 0.5, range(N), ["samples:fp"], "samples:fp is 0.497 times cpu-clock"),
        ("etalon", "", "realtime_s", 1.005, range(N), ["realtime_s"], "instead of 10 s"),
    ],
)
def test_a_spoiled_instrument_is_found_and_named(
    workload: str, kind: str, metric: str, factor: float, runs: range, at_fault: list[str], words: str
) -> None:
    made = validation(scaled(workload, metric, factor, runs, kind))
    assert made["at_fault"] == at_fault
    assert made["verdict"][0] == f"At fault: {', '.join(at_fault)}."
    assert any(words in line and line.startswith(workload) for line in made["verdict"][1:]), made["verdict"]


def test_parallel_work_may_take_more_cpu_time_than_elapsed_time() -> None:
    made = validation()
    found = [each for each in made["findings"] if each["workload"] == "perfect" and "not above" in each["rule"]]
    assert [each["holds"] for each in found] == [True] * 4
    assert "utilization 2.0" in found[0]["words"]


def test_an_outlying_first_run_is_reported_and_accepted() -> None:
    """The Technical Note's lone outliers were the first of each series."""
    made = validation(scaled("etalon", "perf-elapsed", 1.001, range(1)))
    assert made["at_fault"] == []
    assert "etalon: the first perf-elapsed is 10.01, the median 10: a warm-up." in made["verdict"]
    etalon = next(each for each in made["workloads"] if each["workload"] == "etalon")
    assert etalon["metrics"]["perf-elapsed"]["first_run"]["ratio"] > 10
    assert not etalon["metrics"]["wall"]["first_run"]["flagged"]


def test_an_etalon_that_ends_late_since_others_were_running_is_not_a_clocks_fault() -> None:
    def spoil(series: Made) -> None:
        for name in ("raw_s", "monotonic_s", "realtime_s", "boottime_s", "wall", "perf-elapsed"):
            for run in range(1, N):
                series["etalon", ""].values[name][run] += 0.02 * (run % 4 > 0)

    assert validation(spoil)["at_fault"] == []


CPU_TIMES = ("user", "sys", "task-clock", "cpu-clock")


def competing(series: Made) -> None:
    """Others ran during three trials of the etalon, and left it a third of the CPU. It ends on time all the same."""
    for run in range(3):
        for metric in CPU_TIMES:
            series["etalon", ""].values[metric][run] /= 3


def test_an_etalon_that_had_less_of_the_cpu_is_not_an_instruments_fault() -> None:
    made = validation(competing)
    assert made["at_fault"] == []
    rules = [each for each in made["findings"] if each["workload"] == "etalon" and "does not drop" in each["rule"]]
    assert [each["instruments"] for each in rules] == [["task-clock"], ["cpu-clock"], ["user + sys"], ["samples:fp"]]
    assert [each["holds"] for each in rules] == [True, True, True, None]


@pytest.mark.parametrize("load", [False, True])
@pytest.mark.parametrize("metric", ["task-clock", "cpu-clock"])
def test_an_instrument_that_alone_drops_on_the_etalon_is_at_fault(metric: str, load: bool) -> None:
    def spoil(series: Made) -> None:
        if load:
            competing(series)
        series["etalon", ""].values[metric][20] *= 0.2

    made = validation(spoil)
    assert made["at_fault"] == [metric]
    assert any("the CPU time of one instrument does not drop alone" in line for line in made["verdict"])


def test_samples_of_the_etalon_are_compared_with_user_and_system_time_of_the_same_trials() -> None:
    def both(series: Made, spoilt: tuple[str, ...]) -> None:
        here = series["etalon", "samples:fp"].values
        here["user"], here["sys"] = dict.fromkeys(range(N), 10.0), dict.fromkeys(range(N), 0.0)
        for metric in spoilt:
            here[metric][5] *= 0.3

    assert validation(lambda series: both(series, ("user", "samples")))["at_fault"] == []
    assert validation(lambda series: both(series, ("samples",)))["at_fault"] == ["samples:fp"]


def test_cycles_of_the_etalon_are_whatever_frequency_and_load_leave() -> None:
    def spoil(series: Made) -> None:
        for name in ("etalon", "copy"):
            series[name, ""].values["cycles"] = dict.fromkeys(range(N), 3e10) | {4: 1e10}

    found = [each for each in validation(spoil)["findings"] if each["instruments"] == ["cycles"]]
    assert [(each["workload"], each["holds"]) for each in found] == [("copy", False)]


def test_a_clock_that_is_slow_is_at_fault() -> None:
    assert validation(scaled("etalon", "boottime_s", 0.998))["at_fault"] == ["boottime_s"]


def test_an_etalon_that_is_steadier_than_work_shows_that_the_work_varies() -> None:
    line = next(line for line in validation()["verdict"] if line.startswith("The etalon varies by 0.00"))
    assert line.endswith("the work itself varies, not the clocks.")
    assert "aliquot by " in line


def test_clocks_of_one_source_are_not_called_independent() -> None:
    made = validation()
    assert any(
        "tick from one source (tsc): their agreement proves nothing about its rate" in line for line in made["verdict"]
    )


def test_lost_and_paused_samples_are_reported() -> None:
    def spoil(series: Made) -> None:
        series["copy", "samples:fp"] = replace(series["copy", "samples:fp"], lost=7, throttled=2)

    said = validation(spoil)["verdict"]
    assert "copy samples:fp: the kernel has lost 7 records: the count is too low." in said
    assert "copy samples:fp: sampling was paused 2 times: the count is too low." in said


def test_a_missing_instrument_has_a_reason_and_no_number() -> None:
    made = validation()
    assert "cycles is unavailable: no PMU here." in made["verdict"]
    assert not any("cycles" in each["metrics"] for each in made["workloads"])


def test_trials_that_failed_or_are_still_to_come_are_reported() -> None:
    said = validation(failed=3, failures=(("aliquot", "exited with 1"),), done=100)["verdict"]
    assert "3 trials failed." in said
    assert "aliquot: exited with 1." in said
    assert said[-1] == "So far: 100 of 400 trials."


def test_without_any_trial_no_instrument_is_judged() -> None:
    made = validation(lambda series: series.clear(), done=0)
    assert made["verdict"][0] == "No instrument can be judged: no check was possible."
    assert made["at_fault"] == []


def test_a_series_of_one_value_or_of_equal_ones_is_judged_without_a_number_that_json_lacks() -> None:
    def spoil(series: Made) -> None:
        one = series["copy", ""]
        series["copy", ""] = replace(one, values={name: {0: row[0]} for name, row in one.values.items()})
        flat = series["aliquot", ""].values["wall"]
        flat.update(dict.fromkeys(range(1, N), 0.6) | {0: 0.7})

    json.dumps(validation(spoil), allow_nan=False)
