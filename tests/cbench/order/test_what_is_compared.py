"""Values without a partner, values that no analysis accepts, and effects that are on or off."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from cbench.cli import app
from cbench.order.stats.pair_changes import pair_changes
from tests.cbench.order.studies import analyze, write
from tests.cbench.study.storing import stored


def drifting(path: Path, failing_after: int = 50, pairs: int = 60) -> Path:
    """No effect: both runs of a pair share a level, which rises from pair to pair; late random trials fail."""
    draw, lines = random.Random(4), []
    for run in range(2 * pairs):
        value = 100 + 2 * (run // 2) + draw.gauss(0, 1)
        failed = run % 2 and run > failing_after
        lines.append(f"a,{'random' if run % 2 else 'fixed'},{run},0,{'' if failed else value}")
    return write(path, lines)


def test_drift_and_failures_in_one_order_are_not_reported_as_an_effect_of_the_order(tmp_path: Path) -> None:
    made, code = analyze(drifting(tmp_path / "s.csv"))
    assert code == 0
    assert made["tests"]["a"]["p_spread"] > 0.05
    assert not [each["named"] for each in made["claims"] if each["family"] == "spread" and each["named"]]


def test_medians_and_means_beside_a_paired_difference_are_those_of_the_same_pairs(tmp_path: Path) -> None:
    path = drifting(tmp_path / "s.csv")
    made = analyze(path)[0]["tests"]["a"]
    assert (made["n_fixed"], made["n_random"], made["pairs"], made["without_partner"]) == (25, 25, 25, 35)
    assert abs(made["delta_pct_median"]) < 2
    assert abs(made["delta_pct_mean"]) < 1
    shown = CliRunner().invoke(app, ["order", "analyze", str(path)]).stdout
    assert "; 25 pairs of a fixed and a random run, by signed ranks." in shown
    assert "n, medians, means, Δ and p spread leave out 35 values whose partners are missing." in shown


def test_orders_whose_runs_have_no_pair_with_two_values_are_not_compared(tmp_path: Path) -> None:
    lines = []
    for run in range(60):
        lines += [
            f"{name},{'random' if run % 2 else 'fixed'},{run},{at},{100 + run // 2}" for at, name in enumerate("ab")
        ]
        if (run < 30) == bool(run % 2):
            lines[-1] = lines[-1].rpartition(",")[0] + ","
    made, code = analyze(write(tmp_path / "s.csv", lines))
    assert code == 0
    assert made["tests"]["b"]["p"] is None
    assert "b was not compared: no pair of neighboring runs has results in both orders" in made["design"]["warnings"]


def test_a_store_with_a_value_too_large_to_be_squared_is_analyzed_without_it(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", 2, "interleaved", 12, lambda test, *_: 1e300 if test else 1.0)
    made, code = analyze(path)
    assert code == 0
    assert made["tests"]["a"]["n_fixed"] == 12
    assert made["tests"]["b"]["n_fixed"] == 0
    said = (
        "b: the value 1e+300 of run 1 is beyond ±1e+150, too large to be squared; use a larger unit; this trial and 23 "
        "more like it count as failed"
    )
    assert said in made["design"]["warnings"]


def test_an_effect_that_is_on_or_off_is_described_by_the_pairs_that_have_it(tmp_path: Path) -> None:
    lines = []
    for run in range(60):
        low = run % 2 and run % 4 == 1
        lines.append(f"use,{'random' if run % 2 else 'fixed'},{run},0,{100 if low else 1000}")
    made, code = analyze(write(tmp_path / "s.csv", lines))
    assert code == 1
    assert "use (lower in random order in 15 of 30 pairs, by 90.00 %; equal in 15)" in made["verdict"][0]
    assert made["tests"]["use"]["pair_changes"] == {
        "higher": 0,
        "lower": 15,
        "equal": 15,
        "higher_pct": None,
        "lower_pct": [pytest.approx(90), pytest.approx(90)],
    }
    assert made["tests"]["use"]["delta_pct_hl"] == pytest.approx(100 * (1 - 0.1**0.5))


def test_pairs_are_described_only_if_the_estimate_is_near_none_of_their_few_differences() -> None:
    on_off = np.repeat([0.0, -2.3], 15)
    assert pair_changes(on_off, True, 100 * (1 - np.exp(-1.15))) is not None
    assert pair_changes(on_off, True, 100 * (1 - np.exp(-2.2))) is None
    assert pair_changes(on_off + np.linspace(0, 0.1, 30), True, 100 * (1 - np.exp(-1.15))) is None


@pytest.mark.slow
def test_no_description_follows_if_a_direct_predecessor_is_named_as_significant_alone(tmp_path: Path) -> None:
    draw, found = random.Random(3), 0
    for seed in range(12):
        lines = []
        for run in range(40):
            tests = list("abcd")
            draw.shuffle(tests)
            for at, test in enumerate(tests):
                after = at > 0 and tests[at - 1] == "b"
                value = draw.gauss(100, 1) + (
                    1.9 if test == "d" and after else 1.2 * ("b" in tests[:at]) * (test == "d")
                )
                lines.append(f"{test},williams,{run},{at},{value}")
        made, _ = analyze(write(tmp_path / f"{seed}.csv", lines))
        alone = [line for line in made["verdict"] if line.startswith("significant only when tested alone")]
        if any(re.search(r"the predecessor affects: [^;]*d ", line) for line in alone):
            found += 1
            assert all(each["test"] != "d" for each in made.get("described", ()))
    assert found


def test_values_next_to_zero_have_a_change_too(tmp_path: Path) -> None:
    path = write(
        tmp_path / "s.csv",
        [f"a,{'random' if run % 2 else 'fixed'},{run},0,{1e-17 if run % 2 else 100}" for run in range(60)],
    )
    made, code = analyze(path)
    assert (code, made["tests"]["a"]["delta_pct_hl"]) == (1, pytest.approx(100))


def test_runs_without_a_complete_pair_are_refused_with_the_reason(tmp_path: Path) -> None:
    lines = [
        f"a,{'random' if run % 2 else 'fixed'},{run},0,{run + 100 if (run < 8) != bool(run % 2) else ''}"
        for run in range(16)
    ]
    write(tmp_path / "s.csv", lines)
    done = CliRunner().invoke(app, ["order", "analyze", str(tmp_path / "s.csv")])
    assert "no pair of neighboring runs has results in both orders; --unpaired compares all runs" in str(done.exception)
