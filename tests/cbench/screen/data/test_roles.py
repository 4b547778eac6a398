"""The role of each column of a table."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from cbench.screen.data.read_table import read
from cbench.screen.data.roles import IGNORED, SHARED, Chosen
from quiet.errors import UsageError
from tests.cbench.screen.screens import analysed, table


def crossed(name: str) -> list[dict[str, Any]]:
    """Two factors, one with a reserved name that does all there is to do, six values of each treatment."""
    return [
        {"x": x, name: level, "value": 10 * level + draw / 7}
        for x, level in product((0, 1), (1, 2))
        for draw in (1, 5, 3, 6, 2, 4)
    ]


@pytest.mark.parametrize("name", ["iteration", "questionable", *IGNORED, *SHARED])
def test_a_column_whose_levels_are_crossed_with_the_others_is_a_factor_whatever_its_name(
    tmp_path: Path, name: str
) -> None:
    made, data = analysed(table(tmp_path / "data.csv", crossed(name)))
    assert {factor.name for factor in data.factors} == {"x", name}
    assert made["design"]["columns"] == {"x": "factor", name: "factor", "value": "response"}
    assert made["verdict"][0].startswith(f"effects that matter: {name} (+10, ")


def test_columns_that_are_not_factors_are_reported_with_the_reason(tmp_path: Path) -> None:
    rows = [row | {"trial": number, "host": "a", "seed": 7} for number, row in enumerate(crossed("y"))]
    made, _ = analysed(table(tmp_path / "data.csv", rows))
    columns = made["design"]["columns"]
    assert columns["seed"] == "ignored (it has only one value)"
    assert columns["trial"] == (
        "ignored (its levels are not crossed with those of the factors; --factor makes it a factor)"
    )


def test_a_column_that_repeats_a_factor_is_reported_and_not_a_second_factor(tmp_path: Path) -> None:
    rows = [row | {"copy": row["y"], "name": "pq"[row["x"]], "all": "same"} for row in crossed("y")]
    path = table(tmp_path / "data.csv", rows)
    made, data = analysed(path)
    assert [factor.name for factor in data.factors] == ["x", "y", "all"]
    columns = made["design"]["columns"]
    assert columns["copy"] == "ignored (its levels match those of the factor y one to one)"
    assert columns["name"] == "ignored (its levels match those of the factor x one to one)"
    assert made["verdict"][0].startswith("effects that matter: y (+10, ")
    assert "copy repeats y: an effect of y may be that of copy" in made["design"]["warnings"]
    named = read(path, Chosen(factors=("y", "copy")))
    assert [factor.name for factor in named.factors] == ["y", "copy"]


def test_in_a_table_with_iterations_our_column_names_have_their_meaning(tmp_path: Path) -> None:
    rows = [
        {"x": x, "batch": batch, "run": 3 * batch + at, "iteration": at, "value": x + at % 3 + batch}
        for batch in (0, 1)
        for at in range(3)
        for x in (0, 1)
    ]
    data = read(table(tmp_path / "data.csv", rows))
    assert [factor.name for factor in data.factors] == ["x"]
    assert dict(data.columns)["batch"] == "batch, between two resets"
    assert dict(data.columns)["run"].startswith("ignored")


def test_an_iteration_with_one_row_of_each_treatment_and_response_is_an_iteration(tmp_path: Path) -> None:
    rows = [
        {"x": x, "iteration": at, "response": name, "value": x + at % 3 + len(name)}
        for at in range(6)
        for x in (0, 1)
        for name in ("wall", "rss")
    ]
    data = read(table(tmp_path / "data.csv", rows))
    assert [factor.name for factor in data.factors] == ["x"]
    assert dict(data.columns)["iteration"] == "iteration, whose rows belong together"


@pytest.mark.slow
def test_the_order_of_rows_never_changes_the_verdict_of_a_table_without_iterations(tmp_path: Path) -> None:
    rows = [{"a": a, "b": b, "value": draw % 17 + 3 * a} for a, b in product((0, 1), (0, 1)) for draw in range(20)]
    by_value = sorted(rows, key=lambda row: row["value"])
    shuffled = random.Random(1).sample(rows, len(rows))
    p = []
    for number, each in enumerate((rows, by_value, shuffled)):
        made, _ = analysed(table(tmp_path / f"{number}.csv", each))
        p.append([effect["p"] for effect in made["responses"]["value"]["effects"].values()])
        assert any(line.startswith("beware: no column iteration: the rows are treated as") for line in made["verdict"])
    assert p[0] == pytest.approx(p[1])
    assert p[0] == pytest.approx(p[2])


def test_rows_are_paired_by_their_order_on_request(tmp_path: Path) -> None:
    rows = [{"a": a, "value": 100 * at + a + (at * a) / 50} for at in range(9) for a in (0, 1)]
    path = table(tmp_path / "data.csv", rows)
    paired, _ = analysed(path, chosen=Chosen(by_order=True))
    assert paired["factors_matter"]
    assert not analysed(path)[0]["factors_matter"]


def test_a_block_may_be_named_and_must_be_a_separate_column(tmp_path: Path) -> None:
    rows = [{"a": a, "day": f"d{day}", "value": 100 * day + a + (day * a) / 50} for day in range(9) for a in (0, 1)]
    path = table(tmp_path / "data.csv", rows)
    made, _ = analysed(path, chosen=Chosen(block="day"))
    assert made["factors_matter"]
    assert made["design"]["columns"]["day"] == "block"
    with pytest.raises(UsageError, match="--block week: no column week; the columns are a, day, value"):
        read(path, Chosen(block="week"))
    with pytest.raises(UsageError, match="--block value: already has another role"):
        read(path, Chosen(block="value"))
