"""`cbench order analyze`: planted effects are found and named; odd studies get a sensible answer or a clear line."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cbench.order.verdict import NOTHING
from tests.cbench.order.studies import analyze, refused, write

TESTS = ("a", "b", "c", "d")
Effect = Callable[[str, int, str | None, bool, int], float]
Row = tuple[str, str, int, int, float]


def planted(effect: Effect, runs: int = 40, seed: int = 1, blocked: bool = False) -> Iterator[Row]:
    """Values near 100; `effect` of test, position, predecessor, random order, run is added."""
    rng = random.Random(seed)
    for run in range(2 * runs):
        shuffled = run >= runs if blocked else run % 2 == 1
        order = rng.sample(TESTS, len(TESTS)) if shuffled else list(TESTS)
        for place, test in enumerate(order):
            before = order[place - 1] if place else None
            value = 100 + rng.gauss(0, 1) + effect(test, place, before, shuffled, run)
            yield test, "random" if shuffled else "fixed", run, place, round(value, 6)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.csv"


def test_a_test_that_only_random_order_changes_is_the_one_that_is_found(path: Path) -> None:
    made, code = analyze(write(path, planted(lambda test, _p, _b, shuffled, _r: -2 * (test == "c" and shuffled))))
    assert code == 1
    assert made["order_matters"]
    assert [name for name, each in made["tests"].items() if each["significant"]] == ["c"]
    assert 1.5 < made["tests"]["c"]["delta_pct_median"] < 2.5
    assert made["tests"]["c"]["case"] == 1
    assert made["verdict"][0].startswith("order matters: 1 of 4 tests differs between fixed and random order: c (")
    assert " % lower in random order, 1." in made["verdict"][0]
    assert made["verdict"][0].endswith(" at 95 %)")
    low, high = made["tests"]["c"]["delta_pct_interval"]
    assert 1 < low < made["tests"]["c"]["delta_pct_hl"] < high < 3
    assert made["alpha_bonferroni"] == 0.0125


def test_without_an_effect_nothing_is_found_and_the_detectable_difference_is_reported(path: Path) -> None:
    made, code = analyze(write(path, planted(lambda *_: 0.0)))
    assert code == 0
    assert made["design"]["interleaved"]
    assert all(line.startswith("significant only when tested alone, each at 5 %: ") for line in made["verdict"][1:])
    assert made["verdict"][0].startswith("no difference between fixed and random order was found in 4 tests; ")
    assert not made["design"]["warnings"]
    for each in made["tests"].values():
        assert not each["position_significant"]
        assert not each["drift_significant"]
        assert 0.3 < each["detectable_pct"] < 1.5
        assert 5 < each["runs_needed"] < 60


def test_the_predecessor_that_disturbs_is_named_though_the_plain_test_is_blind(path: Path) -> None:
    made, _ = analyze(write(path, planted(lambda test, _p, before, _s, _r: 3 * (test == "b" and before == "d"), 60)))
    found = [each for each in made["predecessors"] if each["significant"]]
    assert [(each["test"], each["after"]) for each in found] == [("b", "d")]
    assert 2 < found[0]["delta_pct"] < 4
    assert len(made["predecessors"]) == 16
    assert any(line.startswith("the predecessor affects: b after d (+") for line in made["verdict"])
    assert {group["label"] for group in made["tests"]["b"]["predecessor"]["groups"]} == {None, "a", "c", "d"}


def test_a_first_trial_that_is_slow_shows_as_position_and_at_the_beginning_of_a_run(path: Path) -> None:
    made, _ = analyze(write(path, planted(lambda test, place, _b, _s, _r: 4 * (test == "c" and place == 0), 60)))
    each = made["tests"]["c"]
    assert each["position_significant"]
    assert each["first_trial"]["p"] < 1e-6
    assert 3 < each["first_trial"]["delta_pct"] < 5
    assert [group["label"] for group in each["position"]["groups"]] == [0, 1, 2, 3]
    assert each["position"]["groups"][0]["median"] > 103
    assert any("c at the beginning of a run (+" in line for line in made["verdict"])


def test_drift_is_found_in_both_orders_and_is_not_taken_for_an_effect_of_order(path: Path) -> None:
    made, code = analyze(write(path, planted(lambda test, _p, _b, _s, run: 0.05 * run * (test == "a"))))
    assert [name for name, each in made["tests"].items() if each["drift_significant"]] == ["a"]
    assert made["tests"]["a"]["drift_rho"] > 0.5
    assert any(line == "drift over the study: a" for line in made["verdict"])
    assert code == 0


def test_the_same_drift_in_a_blocked_study_looks_like_an_effect_and_is_flagged(path: Path) -> None:
    rows = planted(lambda test, _p, _b, _s, run: 0.05 * run * (test == "a"), blocked=True)
    made, code = analyze(write(path, rows))
    assert (code, made["order_matters"]) == (2, None)
    assert made["tests"]["a"]["significant"]
    assert made["design"]["interleaved"] is False
    assert made["verdict"][0].startswith(
        "order and time cannot be distinguished: 40 fixed and 40 random runs lie apart"
    )
    assert made["verdict"][1].startswith("by the order or by time: 1 of 4 tests differs between fixed and random order")


def test_comparisons_that_change_with_the_order_are_named(path: Path) -> None:
    """In fixed order d is above all others, in random order below."""
    made, _ = analyze(write(path, planted(lambda test, _p, _b, shuffled, _r: (-3 if shuffled else 3) * (test == "d"))))
    assert (made["across"]["pairs"], made["across"]["reversed"]) == (6, 3)
    assert [(each["a"], each["b"], each["fixed"], each["random"]) for each in made["across"]["named"][:3]] == [
        (test, "d", "below", "above") for test in "abc"
    ]
    assert any("of 6 comparisons between tests change with the order" in line for line in made["verdict"])


def test_the_decision_is_by_the_exact_distribution_and_h_and_p_stay_the_papers(path: Path) -> None:
    """4 values below 4 others: H = 16/3, by chi-squared p = 0.0209; 2 of the 70 ways to deal them are so far apart."""
    rows = [f"a,{'fixed' if each < 4 else 'random'},{each}" for each in range(8)]
    made, code = analyze(write(path, rows, "test,order,value"), "--alpha", "0.025")
    each = made["tests"]["a"]
    assert (round(each["H"], 9), round(each["p"], 4)) == (round(16 / 3, 9), 0.0209)
    assert round(each["p_permutation"], 12) == round(each["p_adjusted"], 12) == round(2 / 70, 12)
    assert (each["significant"], code) == (False, 0)
    made, code = analyze(path, "--alpha", "0.025", "--as-published")
    assert (made["tests"]["a"]["significant"], code) == (True, 1)
    assert made["tests"]["a"]["p_adjusted"] == made["tests"]["a"]["p"] == each["p"]


# Odd studies


def test_all_values_alike(path: Path) -> None:
    made, code = analyze(write(path, [(*row[:4], 7) for row in planted(lambda *_: 0.0)]))
    assert code == 0
    for each in made["tests"].values():
        assert (each["H"], each["p"], each["p_permutation"], each["epsilon2"]) == (0, 1, 1, 0)
        assert each["ci_fixed"] == each["ci_random"] == [7, 7]
        assert each["delta_pct_mean"] == each["delta_pct_median"] == each["cov_fixed"] == 0
        assert each["position_p"] == each["predecessor_p"] == 1
        assert each["drift_p"] is None
    assert made["across"]["changed"] == 0


@pytest.mark.parametrize("value", [0, -3])
def test_values_at_and_below_0(path: Path, value: int) -> None:
    made, _ = analyze(write(path, [(*row[:4], value + (row[2] % 3 - 1)) for row in planted(lambda *_: 0.0)]))
    for each in made["tests"].values():
        assert (each["delta_pct_median"] is None) == (value == 0)
        assert (each["runs_needed"] is None) == (value == 0)


def test_one_test_alone(path: Path) -> None:
    rows = [("a", "random" if run % 2 else "fixed", run, 0, run % 7) for run in range(40)]
    made, code = analyze(write(path, rows))
    assert code == 0
    assert made["alpha_bonferroni"] == 0.05
    each = made["tests"]["a"]
    assert each["position_p"] is each["predecessor_p"] is each["first_trial"] is None
    assert made["across"]["pairs"] == 0
    assert made["predecessors"] == []


def test_one_run_of_each_order(path: Path) -> None:
    made, code = analyze(write(path, planted(lambda *_: 0.0, runs=1)))
    assert code == 0
    for each in made["tests"].values():
        assert (each["n_fixed"], each["n_random"], each["H"], each["eta2"]) == (1, 1, 1, None)
        assert each["p_permutation"] == 1  # both ways to deal two values are as far apart
        assert each["ci_fixed"] is each["case"] is each["gap"] is None
        assert each["ci_needs"] == 6
    assert made["design"]["interleaved"]
    assert (
        "there are too few runs to compute the difference that would be detected with a probability of 80 %"
        in made["verdict"][0]
    )


def test_a_single_trial(path: Path) -> None:
    made, code = analyze(write(path, ["a,fixed,0,0,1"]))
    assert code == 2
    assert made["verdict"] == made["design"]["warnings"] == [NOTHING]
    assert made["tests"]["a"]["median_fixed"] == 1
    assert made["tests"]["a"]["p"] is made["tests"]["a"]["median_random"] is None


@pytest.mark.parametrize("order", ["fixed", "random"])
def test_only_one_order(path: Path, order: str) -> None:
    rows = [row for row in planted(lambda *_: 0.0) if row[1] == order]
    made, code = analyze(write(path, rows))
    assert code == (2 if order == "fixed" else 0)  # effects within runs of the random order can be judged
    assert all(each["p"] is each["case"] is None for each in made["tests"].values())
    assert not any(each["significant"] for each in made["tests"].values())
    assert ("nothing was compared" in made["verdict"][0]) == (order == "fixed")


def test_unequal_sizes_and_a_test_that_is_missing_in_one_order(path: Path) -> None:
    rows = [row for row in planted(lambda *_: 0.0) if row[1] == "fixed" or row[2] < 20]
    rows = [row for row in rows if row[:2] != ("d", "random")]
    made, _ = analyze(write(path, rows))
    assert [(each["n_fixed"], each["n_random"]) for each in made["tests"].values()] == [(10, 10)] * 3 + [(40, 0)]
    assert [each.get("without_partner") for each in made["tests"].values()] == [30, 30, 30, None]
    assert made["tests"]["d"]["p"] is None
    assert made["alpha_bonferroni"] == 0.05 / 3  # what was not compared is not corrected for


def test_a_test_that_always_failed(path: Path) -> None:
    rows = [(*row[:4], "" if row[0] == "b" else row[4]) for row in planted(lambda *_: 0.0, runs=8)]
    made, _ = analyze(write(path, rows))
    each = made["tests"]["b"]
    assert (each["n_fixed"], each["failed_fixed"], each["n_random"], each["failed_random"]) == (0, 8, 0, 8)
    assert each["p"] is each["median_fixed"] is each["position_p"] is each["drift_p"] is None
    assert made["tests"]["a"]["p"] is not None


def test_the_order_of_rows_does_not_matter(path: Path, tmp_path: Path) -> None:
    rows = list(planted(lambda test, _p, before, _s, _r: 3 * (test == "b" and before == "d")))
    other = random.Random(3).sample(rows, len(rows))
    one, two = analyze(write(path, rows))[0], analyze(write(tmp_path / "other.csv", other))[0]
    assert {name: one["tests"][name] for name in TESTS} == {name: two["tests"][name] for name in TESTS} or all(
        close(one["tests"][name], two["tests"][name]) for name in TESTS
    )
    assert one["design"] == two["design"]


def close(one: Any, other: Any) -> bool:
    """Alike but for the last digits of sums taken in another order."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return sorted(map(str, one)) == sorted(map(str, other)) or all(map(close, one, other))
    return bool(one == other or (isinstance(one, float) and abs(one - other) <= 1e-9 * abs(one) + 1e-12))


def test_the_printed_table_agrees(path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    from typer.testing import CliRunner

    from cbench.cli import app

    rows = [*planted(lambda test, _p, _b, shuffled, _r: 2 * (test == "c" and shuffled), runs=8), "b,fixed,99,0,"]
    done = CliRunner().invoke(app, ["order", "analyze", str(write(path, rows))])
    assert done.exit_code in (0, 1)
    assert "p position" in done.stdout


def many(tmp_path: Path, tests: int, trials: int) -> Path:
    rng = np.random.default_rng(1)
    rows = tests * trials
    run = np.tile(np.arange(trials), tests)
    place = np.argsort(rng.random((trials, tests)), axis=1)
    place[::2] = np.arange(tests)
    table = pa.table(
        {
            "test": pa.array([f"t{number:05}" for number in range(tests)]).take(
                pa.array(np.repeat(np.arange(tests), trials))
            ),
            "order": pa.array(["fixed", "random"]).take(pa.array(run % 2)),
            "run": run,
            "position": place.T.ravel(),
            "value": rng.lognormal(size=rows),
        }
    )
    pq.write_table(table, tmp_path / "many.parquet")
    return tmp_path / "many.parquet"


@pytest.mark.slow
def test_ten_thousand_tests(tmp_path: Path) -> None:
    start = time.process_time()
    made, code = analyze(many(tmp_path, 10_000, 20))
    assert time.process_time() - start < 60
    assert len(made["tests"]) == 10_000
    assert made["alpha_bonferroni"] == 0.05 / 10_000
    assert code == 0
    assert len(made["predecessors"]) == 1000
    smallest = sorted(each["p_holm"] for each in made["predecessors"])
    assert smallest == [each["p_holm"] for each in sorted(made["predecessors"], key=lambda each: each["p_holm"])]
    assert len(json.dumps(made)) < 60e6


@pytest.mark.slow
def test_of_many_places_only_the_most_used_are_listed(tmp_path: Path) -> None:
    made, _ = analyze(many(tmp_path, 250, 1500))
    for each in itertools.islice(made["tests"].values(), 5):
        assert each["position"]["labels"] > 200
        sizes = [group["n"] for group in each["position"]["groups"]]
        assert len(sizes) == 20
        assert min(sizes) >= 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--alpha", "0"), "--alpha 0: must be at least 1e-9 and below 1, such as 0.05"),
        (("--alpha", "1"), "--alpha 1: must be at least 1e-9 and below 1"),
        (("--alpha", "1e-320"), "at least 1e-9"),
        (("--delta", "0"), "--delta 0: must be a shift in %, above 0 and at most 1000"),
    ],
)
def test_wrong_options_are_reported_in_one_line(path: Path, options: tuple[str, ...], message: str) -> None:
    refused(write(path, ["a,fixed,0,0,1"]), message, *options)


def test_options_are_taken(path: Path) -> None:
    write(path, planted(lambda test, _p, _b, shuffled, _r: 0.6 * shuffled, runs=30))
    assert analyze(path, "--alpha", "0.01")[0]["alpha_bonferroni"] == 0.0025
    few, many_runs = (analyze(path, "--delta", delta)[0]["tests"]["a"]["runs_needed"] for delta in ("5", "0.5"))
    assert few < many_runs
    ours, published = analyze(path)[0], analyze(path, "--as-published")[0]
    each = ours["tests"]["a"]
    assert each["p"] != each["p_permutation"]
    assert each["p_decides"] == each["p_paired"]
    assert each["p_adjusted"] == min(1, 4 * each["p_decides"])
    alone = analyze(path, "--unpaired")[0]["tests"]["a"]
    assert alone["p_paired"] is None
    assert alone["p_decides"] == max(each["p_permutation"], each["p_brunner_munzel"])
    assert published["tests"]["a"]["p_adjusted"] == each["p"]
    assert (ours["intervals"]["level"], published["intervals"]["level"]) == (0.95, 0.9875)
