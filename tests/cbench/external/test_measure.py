"""Commands are warmed up, take turns in a random order, and every trial is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cbench.external.measure import CommandSeries, Measured, is_settled, measure, seldom
from cbench.external.options import ExternalOptions
from cbench.external.result import commands_result, estimate
from cbench.external.spawn_cost import CODE, empty_program, empty_starts
from cbench.store.store import Store
from quiet import QuietError, UsageError
from tests.cbench.external.test_options import make

FAST: dict[str, Any] = {"quick": True, "counter": "wall"}


def measured(options: ExternalOptions) -> Measured:
    return measure(options, lambda *_: None, lambda _line: None)


def log(path: Path, word: str) -> str:
    return f"echo {word} >> {path}"


def test_an_empty_program_starts_and_ends_without_an_error() -> None:
    from cbench.external.process import Launcher

    with Launcher({}, None, 10) as launcher:
        starts = empty_starts(launcher, 3)
    assert [each.code for each in starts] == [0, 0, 0]
    assert all(empty_program(machine).startswith(b"\x7fELF") for machine in CODE)


def test_each_round_has_every_command_once_and_the_order_changes(tmp_path: Path) -> None:
    path = tmp_path / "log"
    options = make([], [log(path, "a"), log(path, "b")], shell=True, trials=20, warmup="0", **FAST)
    series = measured(options).series
    assert [len(each.trials) for each in series] == [20, 20]
    words = path.read_text().split()
    rounds = [tuple(words[at : at + 2]) for at in range(0, 40, 2)]
    assert set(rounds) == {("a", "b"), ("b", "a")}


def test_the_order_is_drawn_from_the_seed(tmp_path: Path) -> None:
    orders = []
    for number, seed in enumerate((1, 1, 2)):
        path = tmp_path / str(number)
        measured(make([], [log(path, "a"), log(path, "b")], shell=True, trials=12, warmup="0", seed=seed, **FAST))
        orders.append(path.read_text())
    assert orders[0] == orders[1] != orders[2]


def test_setup_runs_once_and_prepare_before_each_trial_warm_up_included(tmp_path: Path) -> None:
    path = tmp_path / "log"
    before = {"prepare": [log(path, "prepare")], "setup": log(path, "setup")}
    options = make([], [log(path, "trial")], shell=True, trials=3, warmup="2", **before, **FAST)
    result = measured(options)
    assert path.read_text().split() == ["setup", *(["prepare", "trial"] * 5)]
    assert len(result.series[0].settling.values) == 2


def test_a_failing_command_ends_the_measurement_with_its_last_line() -> None:
    with pytest.raises(UsageError, match=r"exited with 3: no luck \(--ignore-failure"):
        measured(make([], ["echo no luck >&2; exit 3"], shell=True, **FAST))


def test_ignored_failures_are_counted() -> None:
    result = commands_result(measured(make([], ["exit 3"], shell=True, trials=4, ignore_failure=True, **FAST)))
    assert result.results[0].exit_codes == {"3": 4}


def test_a_failing_prepare_command_is_named() -> None:
    with pytest.raises(QuietError, match="exit 5: exited with 5"):
        measured(make(["true"], [], prepare=["exit 5"], **FAST))


def test_trials_are_stored_as_processes_in_the_order_of_the_commands(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    result = measured(make(["true"], ["true", "sh -c 'exit 0'"], trials=7, warmup="1", output=path, **FAST))
    with Store.open(path) as store:
        every = store.series()
    assert [each.test for each in every] == ["true", "true #2", "sh -c 'exit 0'"]
    assert [each.values for each in every] == [[t.value for t in s.trials] for s in result.series]
    assert [len(each.processes) for each in every] == [7, 7, 7]
    assert all(each.unit == "ns" and each.cpu == -1 and each.ended_ns for each in every)
    assert all(each.begin_ns for one in every for each in one.trials)
    assert all(len(each.warmup) == 1 for each in every)


@pytest.mark.slow
def test_trials_measured_before_a_failure_are_kept(tmp_path: Path) -> None:
    path, flag = tmp_path / "s.db", tmp_path / "flag"
    command = f"echo x >> {flag}; sleep 0.06; test $(wc -l < {flag}) -lt 12"
    lines: list[str] = []
    with pytest.raises(UsageError, match="exited with 1"):
        measure(
            make([], [command], shell=True, trials=50, warmup="0", output=path, **FAST),
            lambda *_: None,
            lines.append,
        )
    with Store.open(path) as store:
        (series,) = store.series()
    assert 4 <= len(series.trials) < 12
    assert series.ended_ns is None
    assert lines == [f"{len(series.trials)} trials of this run are kept in {path}"]


def test_a_noisy_series_settles_within_its_own_spread_and_a_falling_one_does_not() -> None:
    noisy = [1000 + 37 * (7 * n % 11) for n in range(20)]
    assert is_settled(noisy)
    assert not is_settled(noisy[:19])
    assert not is_settled([3000 - 100 * n for n in range(20)])


def test_the_headline_is_the_median_with_its_interval_by_ranks() -> None:
    found = estimate(range(1, 11), "trials")
    assert (found.value, found.interval, found.how) == (5.5, (2.0, 9.0), "median of 10 trials")
    assert estimate([1, 2, 3], "trials").interval is None


@pytest.mark.slow
def test_the_ratio_to_the_first_command_has_an_interval() -> None:
    result = commands_result(measured(make(["true"], ["sleep 0.2"], trials=8, **FAST)))
    first, second = result.results
    assert first.ratio is None
    assert second.ratio is not None
    assert 1 < second.ratio.interval[0] <= second.ratio.value <= second.ratio.interval[1]


def test_trials_that_are_not_stored_yet_are_known() -> None:
    (command,) = make(["true"], []).commands
    assert CommandSeries(command).pending_ns == 0


def test_progress_is_drawn_rarely_but_immediately_at_the_start() -> None:
    drawn: list[int] = []
    show = seldom(lambda _text, done, _total: drawn.append(done))
    for done in range(1000):
        show("", done, 1000)
    assert drawn[0] == 0
    assert len(drawn) < 100
