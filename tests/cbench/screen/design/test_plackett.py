"""Plackett-Burman designs: the printed rows, orthogonality at every size, and what they see of interactions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest

from cbench.screen.design.plackett import plackett_burman, signs

SIZES = range(4, 49, 4)


@pytest.mark.parametrize(
    ("runs", "first"),
    [
        (8, "+++-+--"),
        (12, "++-+++---+-"),
        (20, "++--++++-+-+----++-"),
        (24, "+++++-+-++--++--+-+----"),
    ],
)
def test_the_first_rows_are_those_that_plackett_and_burman_printed(runs: int, first: str) -> None:
    rows = signs(runs)
    assert "".join("+" if sign > 0 else "-" for sign in rows[0]) == first
    assert rows[-1] == [-1] * (runs - 1)


@pytest.mark.parametrize("runs", SIZES)
def test_all_columns_are_balanced_and_orthogonal(runs: int) -> None:
    rows = signs(runs)
    columns = list(zip(*rows, strict=True))
    assert (len(rows), len(columns)) == (runs, runs - 1)
    assert {sign for row in rows for sign in row} == {1, -1}
    assert all(sum(column) == 0 for column in columns)
    assert all(sum(a * b for a, b in zip(one, two, strict=True)) == 0 for one, two in combinations(columns, 2))


def test_twelve_runs_see_a_third_of_each_other_interaction() -> None:
    found = plackett_burman("abcdefghijk")
    assert len(found.treatments) == 12
    shares = found.aliases()
    assert len(shares) == 11 * 45
    assert {abs(share) for *_, share in shares} == {Fraction(1, 3)}
    assert found.words()[1].endswith("1/3 of 45 interactions of other factors")


def test_sixteen_and_eight_runs_see_whole_interactions() -> None:
    for names in ("abcdefg", "abcdefghijklmno"):
        assert {abs(share) for *_, share in plackett_burman(names).aliases()} == {1}


def test_the_estimate_is_the_effect_plus_the_shares_of_interactions() -> None:
    """Noiseless values with main effects and one interaction, by hand from the design's signs."""
    found = plackett_burman("abcdef", runs=12)
    levels = [[2 * level - 1 for level in run] for run in found.treatments]
    values = [3 * run[0] - 2 * run[4] + 5 * run[1] * run[2] for run in levels]
    shares = {main: share for main, one, two, share in found.aliases() if (one, two) == (1, 2)}
    for main in range(6):
        effect = Fraction(sum(run[main] * value for run, value in zip(levels, values, strict=True)), 12)
        assert effect == {0: 3, 4: -2}.get(main, 0) + 5 * shares.get(main, 0)


@pytest.mark.parametrize("factors", [1, 3, 4, 7, 8, 11, 12, 47])
def test_the_smallest_design_is_the_default(factors: int) -> None:
    found = plackett_burman([f"x{number}" for number in range(factors)])
    assert len(found.treatments) == max(4, 4 * (factors // 4 + 1))
    assert len(found.treatments[0]) == factors


@pytest.mark.parametrize(
    ("names", "runs", "words"),
    [
        ("abcd", 4, "4 factors are too many for 4 runs: 3"),
        ("ab", 10, "a multiple of 4"),
        ("ab", 52, "up to 48"),
    ],
)
def test_an_impossible_design_is_refused(names: str, runs: int | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        plackett_burman(names, runs)
