"""Choices of treatments: what they keep, and conditions that mean nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quiet.errors import UsageError
from tests.cbench.screen import screens
from tests.cbench.screen.screens import QUICK, analysed, table

WALL_OF_THREE = screens.Chosen(values=("wall",), factors=("a", "b", "c"))


@pytest.mark.parametrize(
    ("options", "many", "counts", "balanced"),
    [
        ({}, 12, [[6, 6], [6, 6], [4, 4, 4]], True),
        ({"minus": ("fp=0 prf=2",)}, 10, [[5, 5], [4, 6], [4, 4, 2]], False),
        ({"minus": ("os=* fp=* prf=2",)}, 8, [[4, 4], [4, 4], [4, 4, 0]], True),
        ({"only": ("fp=0 prf=1", "fp=1 prf=2")}, 4, [[2, 2], [2, 2], [0, 2, 2]], True),
        ({"only": ("fp=0, prf=1,2",)}, 4, [[2, 2], [4, 0], [0, 2, 2]], True),
    ],
)
def test_choices_of_treatments_report_their_balance(
    tmp_path: Path, options: dict[str, Any], many: int, counts: list[list[int]], balanced: bool
) -> None:
    path = table(tmp_path / "tn.csv", screens.two_by_three())
    made, _ = analysed(path, replace(QUICK, **options))
    used = next(each for each in made["design"]["sets"] if each["name"] == made["filter"]["name"])
    assert used["treatments"] == many
    assert [list(each.values()) for each in used["counts"].values()] == counts
    assert used["balanced"] is balanced


def test_a_level_with_spaces_is_selected_as_written_and_an_empty_condition_is_refused(tmp_path: Path) -> None:
    rows = [{**row, "a": ("-O2 -g", "-O3")[row["a"]]} for row in screens.planted(8)]
    path = table(tmp_path / "flags.csv", rows)
    made, _ = analysed(path, replace(QUICK, only=("a=-O2 -g",)), chosen=WALL_OF_THREE)
    assert made["filter"]["name"] == "only a=-O2 -g"
    made, _ = analysed(path, replace(QUICK, only=("b=0, a=-O2 -g c=0",)), chosen=WALL_OF_THREE)
    used = next(each for each in made["design"]["sets"] if each["name"] == made["filter"]["name"])
    assert used["treatments"] == 1
    with pytest.raises(UsageError, match="--only: the condition is empty"):
        analysed(path, replace(QUICK, only=("",)), chosen=WALL_OF_THREE)


@pytest.mark.parametrize(
    ("only", "treatments"),
    [
        ("L2 size=1", 4),
        ("size=1", 4),
        ("size=0 L2 size=1", 2),
        ("L2 size=0, size=1,0", 4),
        ("size=1 c=0|1 L2 size=0", 2),
    ],
)
def test_the_name_of_a_factor_may_end_with_that_of_another_one(tmp_path: Path, only: str, treatments: int) -> None:
    names = {"a": "L2 size", "b": "size"}
    rows = [{names.get(name, name): value for name, value in row.items()} for row in screens.planted(8)]
    chosen = replace(WALL_OF_THREE, factors=("L2 size", "size", "c"))
    made, _ = analysed(table(tmp_path / "sizes.csv", rows), replace(QUICK, only=(only,)), chosen=chosen)
    used = next(each for each in made["design"]["sets"] if each["name"] == made["filter"]["name"])
    assert used["treatments"] == treatments


@pytest.mark.parametrize("only", ["nope=1", "nope=1 a=0", "a=0 nope=1", "a 0"])
def test_an_unknown_factor_is_named(tmp_path: Path, only: str) -> None:
    path = table(tmp_path / "t.csv", screens.planted(8))
    with pytest.raises(UsageError, match=r"no factor (nope|a 0); the factors are a, b, c"):
        analysed(path, replace(QUICK, only=(only,)), chosen=WALL_OF_THREE)
