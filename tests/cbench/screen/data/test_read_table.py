"""The interpretation of a table's columns, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cbench.screen.data import read_table
from cbench.screen.data.read_table import read
from cbench.screen.data.roles import Chosen
from quiet.errors import UsageError
from tests.cbench.screen import screens
from tests.cbench.screen.screens import analysed, table


def refused(path: Path, chosen: Chosen | None = None) -> str:
    with pytest.raises(UsageError) as error:
        read(path, chosen)
    return str(error.value)


def runs(many: int = 10, **more: Any) -> list[dict[str, Any]]:
    """os and x with two levels each, x with an effect."""
    return [
        {"os": os, "x": x, **more, "iteration": at, "value": 5 * (os == "a") + x + at * (x + 1) / 100}
        for at in range(many)
        for os in ("b", "a")
        for x in (0, 1)
    ]


def test_without_batches_each_level_of_a_hard_factor_is_one(tmp_path: Path) -> None:
    made, data = analysed(table(tmp_path / "data.csv", runs()), chosen=Chosen(hard=("os",)))
    assert data.batches == ("os=b", "os=a")
    assert [factor.hard for factor in data.factors] == [True, False]
    row = made["responses"]["value"]
    assert row["effects"]["os"]["p"] is None
    assert row["effects"]["x"]["significant"]
    assert any(line.startswith("os cannot be tested: one batch per level of os") for line in made["verdict"])


def test_hard_factors_that_change_together_share_their_batches(tmp_path: Path) -> None:
    rows = [row | {"smt": smt} for row in runs(3) for smt in (0, 1)]
    data = read(table(tmp_path / "data.csv", rows), Chosen(factors=("os", "smt", "x"), hard=("os", "smt")))
    assert sorted(data.batches) == ["os=a smt=0", "os=a smt=1", "os=b smt=0", "os=b smt=1"]
    made, _ = analysed(table(tmp_path / "one.csv", runs(3)), chosen=Chosen(hard=("os", "x")))
    assert made["verdict"][0].startswith("nothing could be tested: ")


def test_a_hard_factor_that_changes_within_a_batch_is_refused(tmp_path: Path) -> None:
    said = "--hard os: os changes within batch 1, so it is not hard to change"
    assert refused(table(tmp_path / "one.csv", runs(batch=1)), Chosen(hard=("os",))) == said
    half = [row | {"boot": row["iteration"] % 2} for row in runs()]
    wrong = "--hard x: x changes within batch 0, so it is not hard to change"
    assert refused(table(tmp_path / "two.csv", half), Chosen(hard=("x",))) == wrong


def test_a_hard_factor_recognized_from_its_batches_may_also_be_named(tmp_path: Path) -> None:
    path = table(tmp_path / "data.csv", screens.split_plot())
    assert read(path, Chosen(hard=("os",))).factors == read(path).factors


def test_a_measured_column_is_not_treated_as_a_factor(tmp_path: Path) -> None:
    rows = [row | {"user": number / 7} for number, row in enumerate(runs(6))]
    path = table(tmp_path / "data.csv", rows)
    assert refused(path, Chosen(values=("value",))) == (
        f"{path}: column user: 24 levels in 24 rows: is it a response? Treated as factors: os, x, user; name the "
        "factors with --factor, or responses with --value"
    )
    twins = table(tmp_path / "twins.csv", [row | {"user": number // 2} for number, row in enumerate(rows)][:-1])
    assert "column user: 12 levels in 23 rows" in refused(twins)
    assert [each.name for each in read(path, Chosen(values=("value", "user"))).series] == ["value", "user"]
    assert len(read(path, Chosen(factors=("user",))).treatments) == 24


def test_too_many_treatments_name_the_columns_taken_for_factors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_table, "MOST_TREATMENTS", 3)
    path = table(tmp_path / "data.csv", runs())
    assert refused(path) == f"{path}: 4 treatments of os, x, more than 3: name only the factors with --factor"


def responses(units: tuple[str, str]) -> list[dict[str, Any]]:
    return [row | {"response": "wall", "unit": units[row["x"]]} for row in runs(3)]


def test_two_units_of_one_response_are_refused_with_their_lines(tmp_path: Path) -> None:
    path = table(tmp_path / "data.csv", responses(("ms", "s")))
    assert refused(path) == f"{path}: line 3: column unit: 's' contradicts the unit 'ms' of wall in line 2"


@pytest.mark.parametrize("units", [("ms", "ms"), ("", "ms"), ("ms", "")])
def test_a_row_without_a_unit_has_its_responses_unit(tmp_path: Path, units: tuple[str, str]) -> None:
    (series,) = read(table(tmp_path / "data.csv", responses(units))).series
    assert series.unit == "ms"


def test_each_response_may_have_a_unit_of_its_own(tmp_path: Path) -> None:
    rows = [row | {"response": kind, "unit": kind} for row in runs(3) for kind in ("ms", "s")]
    assert [each.unit for each in read(table(tmp_path / "data.csv", rows)).series] == ["ms", "s"]


def test_rows_without_iterations_are_in_chronological_order(tmp_path: Path) -> None:
    rows = [{"a": place // 3 % 2, "b": place // 6, "value": float(place)} for place in range(12)]
    (series,) = read(table(tmp_path / "data.csv", rows)).series
    assert series.value.tolist() == list(range(12))
    assert series.sequence.tolist() == list(range(12))
