"""With several batches, their agreement decides about an effect, not their iterations alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from cbench.screen.data.roles import Chosen
from tests.cbench.screen import screens
from tests.cbench.screen.screens import QUICK, analysed, cross, table

CHANGING = (1.2, -0.4, 0.9, 0.3, -0.8, 0.2)


def boots(effects: Sequence[float], hard: bool, iterations: int = 12) -> list[dict[str, Any]]:
    """Each boot has its own effect of B; A changes between boots."""
    draw = np.random.default_rng(1)
    return [
        {
            **({"A": boot % 2} if hard else {}),
            "B": b,
            "boot": f"boot {boot}",
            "iteration": iteration,
            "value": 10 + effect * b + 0.1 * draw.standard_normal(),
        }
        for boot, effect in enumerate(effects)
        for iteration in range(iterations)
        for b in (0, 1)
    ]


def of(path: Path, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    made, _ = analysed(table(path, rows), options=QUICK)
    (row,) = made["responses"].values()
    return made, row


@pytest.mark.parametrize("hard", [True, False])
def test_an_effect_that_changes_from_batch_to_batch_is_not_found_and_the_report_says_so(
    tmp_path: Path, hard: bool
) -> None:
    made, row = of(tmp_path / "t.csv", boots(CHANGING, hard, iterations=25))
    effect = row["effects"]["B"]
    assert effect["test"]["by"] == "split-plot analysis of variance"
    assert not effect["significant"]
    assert effect["p"] > 0.4
    assert effect["test"]["p_within"] < 0.01
    assert not made["factors_matter"]
    assert any(line.startswith("B differs within these batches") for line in made["verdict"])


@pytest.mark.parametrize("hard", [True, False])
def test_an_effect_that_all_batches_have_is_found(tmp_path: Path, hard: bool) -> None:
    made, row = of(tmp_path / "t.csv", boots([0.3] * 6, hard))
    assert row["effects"]["B"]["significant"]
    assert row["effects"]["B"]["test"]["estimate"] == pytest.approx(0.3, abs=0.05)
    assert made["verdict"][0].startswith("effects that matter: B (+0.")
    assert not any("differs within these batches" in line for line in made["verdict"])


def test_batches_without_a_hard_factor_are_blocks_of_their_means(tmp_path: Path) -> None:
    rows = boots(CHANGING, hard=False)
    _, row = of(tmp_path / "t.csv", rows)
    means = {
        b: [
            np.mean([each["value"] for each in rows if (each["boot"], each["B"]) == (f"boot {k}", b)]) for k in range(6)
        ]
        for b in (0, 1)
    }
    assert row["effects"]["B"]["p"] == pytest.approx(scipy.stats.ttest_rel(means[0], means[1]).pvalue)


def test_the_easy_factor_of_the_worked_example_has_its_printed_p(tmp_path: Path) -> None:
    _, row = of(tmp_path / "t.csv", screens.split_plot())
    assert row["effects"]["B"]["p"] == pytest.approx(0.0010167, abs=5e-8)
    assert row["effects"]["B"]["test"]["p_within"] == 2.0**-5
    assert row["effects"]["B"]["test"]["estimate"] == pytest.approx(3.5)


def test_one_batch_is_left_to_its_iterations(tmp_path: Path) -> None:
    _, row = of(tmp_path / "t.csv", boots([0.3], hard=False))
    assert row["split_plot"] is None
    assert row["effects"]["B"]["test"]["by"] == "signed ranks in blocks"
    assert row["effects"]["B"]["test"]["p_within"] == row["effects"]["B"]["p"]


def coarse() -> list[dict[str, Any]]:
    """Two boots of each os; a clock of 4 ms says 8 once in both boots of one os."""
    return [
        {
            "os": os,
            "x": x,
            "boot": f"{os}{boot}",
            "iteration": iteration,
            "value": 8 if (os, x, iteration) == (1, 0, 0) else 4,
        }
        for os in (0, 1)
        for boot in "ab"
        for iteration in range(3)
        for x in (0, 1)
    ]


def test_identical_batches_cannot_test_a_hard_factor(tmp_path: Path) -> None:
    made, row = of(tmp_path / "t.csv", coarse())
    assert not made["factors_matter"]
    assert (row["effects"]["os"]["p"], row["interactions"][0]["p"]) == (None, None)
    assert row["effects"]["os"]["why"] == "the whole-plot error is 0: batches are identical"
    assert row["effects"]["x"]["test"]["by"] == "signed ranks in blocks"
    assert row["effects"]["x"]["p"] > 0.05
    assert any(line.startswith("os cannot be tested: the batches of a level are identical") for line in made["verdict"])
    assert any(line.startswith(f"x, {cross('os', 'x')} cannot be tested against") for line in made["verdict"])


def test_a_refusal_of_one_response_names_this_response(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    rows = [row | {"noisy": draw.normal()} for row in coarse()]
    made, _ = analysed(table(tmp_path / "t.csv", rows), QUICK, Chosen(values=("value", "noisy")))
    assert any(
        line.startswith("value: os cannot be tested: the batches of a level are identical") for line in made["verdict"]
    )
    assert not any(line.startswith("os cannot be tested") for line in made["verdict"])
