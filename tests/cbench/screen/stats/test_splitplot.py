"""Split plots: the worked example to the last digit, the wrong analysis, untestable effects, sums of squares."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.screen.stats import splitplot
from cbench.screen.stats.anova_table import HIGHER, TOTAL, WHOLE, WHOLE_ERROR, WITHIN, WITHIN_ERROR, AnovaRow
from cbench.screen.stats.splitplot import SplitPlot

EXAMPLE = {(0, 1): (10, 12), (0, 2): (11, 14), (0, 3): (9, 10), (1, 1): (15, 20), (1, 2): (13, 17), (1, 3): (14, 20)}
LEVELS = np.array([(a, b) for a, _ in EXAMPLE for b in range(2)])
PLOTS = np.array([10 * a + boot for a, boot in EXAMPLE for _ in range(2)])
NAMES = ("os", "B", "os\N{MULTIPLICATION SIGN}B")
VALUES = np.array([float(value) for pair in EXAMPLE.values() for value in pair])


def split_plot(*arguments: Any, hard: list[int]) -> SplitPlot:
    return splitplot.split_plot(*arguments, hard)[0]


def line(found: SplitPlot, source: str) -> AnovaRow:
    return next(row for row in found.rows if row.source == source)


@pytest.fixture(scope="module")
def table() -> SplitPlot:
    return split_plot(("os", "B"), LEVELS, PLOTS, VALUES, hard=[0])


@pytest.mark.parametrize(
    ("source", "ss", "df", "f", "p"),
    [
        ("os", 90.75, 1, 22.6875, 0.0088847),
        (WHOLE_ERROR, 16.0, 4, None, None),
        ("B", 36.75, 1, 73.5, 0.0010167),
        ("os\N{MULTIPLICATION SIGN}B", 6.75, 1, 13.5, 0.0213116),
        (WITHIN_ERROR, 2.0, 4, None, None),
        (TOTAL, 152.25, 11, None, None),
    ],
)
def test_each_row_of_the_example_is_as_printed(
    table: SplitPlot, source: str, ss: float, df: int, f: float | None, p: float | None
) -> None:
    row = line(table, source)
    assert (row.df, row.ss) == (df, pytest.approx(ss, rel=1e-12))
    assert row.f == (None if f is None else pytest.approx(f, rel=1e-12))
    assert (None if row.p is None else round(row.p, 7)) == p


def test_the_batches_against_the_error_within_them_have_the_printed_p(table: SplitPlot) -> None:
    from cbench.stats.distributions import f_sf

    whole, within = line(table, WHOLE_ERROR), line(table, WITHIN_ERROR)
    assert whole.ms == pytest.approx(4)
    assert within.ms == pytest.approx(0.5)
    assert round(f_sf(8.0, whole.df, within.df), 6) == 0.034294


def test_treating_each_value_as_a_batch_overstates_the_hard_factor() -> None:
    wrong = line(split_plot(("os", "B"), LEVELS, np.arange(12), VALUES, hard=[0, 1]), "os")
    assert round(wrong.f or 0, 4) == 40.3333
    assert round(wrong.p or 0, 5) == 0.00022


def test_one_batch_per_level_is_refused_in_words() -> None:
    once = np.isin(PLOTS, (1, 11))
    found = split_plot(("os", "B"), LEVELS[once], PLOTS[once], VALUES[once], hard=[0])
    assert (line(found, "os").f, line(found, "os").p, line(found, WHOLE_ERROR).df) == (None, None, 0)
    assert found.refused[0].startswith("os cannot be tested: one batch per level of os;")
    assert "boot check" in found.refused[0]
    assert "its iterations show effects in this batch only" in found.refused[1]


def test_several_values_of_a_treatment_count_as_their_mean(table: SplitPlot) -> None:
    twice = np.concatenate([VALUES - 1, VALUES + 1, [np.nan]])
    levels, plots = np.concatenate([LEVELS, LEVELS, LEVELS[:1]]), np.concatenate([PLOTS, PLOTS, PLOTS[:1]])
    found = split_plot(("os", "B"), levels, plots, twice, hard=[0])
    assert [row.p for row in found.rows] == pytest.approx([row.p for row in table.rows], nan_ok=True)


def test_a_batch_that_lacks_a_treatment_is_left_out_and_reported() -> None:
    found = split_plot(("os", "B"), LEVELS[1:], PLOTS[1:], VALUES[1:], hard=[0])
    assert (found.dropped, found.batches, line(found, WHOLE_ERROR).df) == ((1,), 5, 3)


def test_batches_of_all_treatments_are_blocks_where_nothing_is_hard() -> None:
    found = split_plot(("os", "B"), LEVELS, PLOTS % 10, VALUES, hard=[])
    assert {row.stratum for row in found.rows if row.source in NAMES} == {WITHIN}
    assert line(found, WITHIN_ERROR).df == 11 - 2 - 3


def test_values_that_are_all_alike_have_no_effect_and_no_f() -> None:
    found = split_plot(("os", "B"), LEVELS, PLOTS, np.full(12, 0.1), hard=[0])
    assert [row.p for row in found.rows if row.source in NAMES] == [1.0, 1.0, 1.0]
    assert [row.f for row in found.rows] == [None] * 6


def test_effects_are_not_compared_with_an_error_of_zero_and_words_say_so() -> None:
    found = split_plot(("os", "B"), LEVELS, PLOTS, LEVELS @ np.array([3.0, 1.0]), hard=[0])
    assert [(row.f, row.p) for row in found.rows if row.source in NAMES] == [(None, None), (None, None), (None, 1.0)]
    whole, within = found.refused
    assert whole.startswith("os cannot be tested: the batches of a level are identical, so the whole-plot error is")
    assert within.startswith("B cannot be tested against the batches: effects are identical in the batches of a level")


def test_batches_that_differ_have_an_error_again() -> None:
    values = LEVELS @ np.array([3.0, 1.0]) + 0.5 * (PLOTS == 2)
    found = split_plot(("os", "B"), LEVELS, PLOTS, values, hard=[0])
    assert 0 < (line(found, "os").p or 0) < 0.01
    assert [each for each in found.refused if each.startswith("os ")] == []


def mixed(boots: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Two hard factors (2 and 3 levels), two easy ones (3 and 2 levels)."""
    rows = [
        (a, h, b, c) for a, h, _ in product(range(2), range(3), range(boots)) for b, c in product(range(3), range(2))
    ]
    plots = np.repeat(np.arange(6 * boots), 6)
    return np.array(rows), plots, np.random.default_rng(seed).normal(size=len(rows))


def test_mixed_levels_and_several_easy_factors_have_the_degrees_of_freedom_of_the_book() -> None:
    levels, plots, values = mixed(4, 1)
    found = split_plot("ahbc", levels, plots, values, hard=[0, 1])
    assert [row.df for row in found.rows if row.stratum == WHOLE] == [1, 2, 2, 6 * 3]
    within = {row.source: row.df for row in found.rows if row.stratum == WITHIN}
    sign = "\N{MULTIPLICATION SIGN}"
    wanted = {"b": 2, "c": 1, "ab": 2, "ac": 1, "hb": 4, "hc": 2, "bc": 2, HIGHER: 16, WITHIN_ERROR: 6 * 3 * 5}
    assert within == {key if key in (HIGHER, WITHIN_ERROR) else sign.join(key): df for key, df in wanted.items()}
    assert sum(row.df for row in found.rows[:-1]) == line(found, TOTAL).df == levels.shape[0] - 1


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(-1e3, 1e3))
def test_sums_of_squares_add_up_and_a_constant_changes_nothing(seed: int, constant: float) -> None:
    levels, plots, values = mixed(2, seed)
    found = split_plot("ahbc", levels, plots, values, hard=[0, 1])
    assert sum(row.ss for row in found.rows[:-1]) == pytest.approx(line(found, TOTAL).ss)
    moved = split_plot("ahbc", levels, plots + 7, values + constant, hard=[0, 1])
    assert [row.ss for row in moved.rows] == pytest.approx([row.ss for row in found.rows], rel=1e-6, abs=1e-9)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_shift_of_whole_batches_changes_nothing_within_them(seed: int) -> None:
    levels, plots, values = mixed(2, seed)
    shifts = np.random.default_rng(seed + 1).normal(scale=100, size=12)
    one = split_plot("ahbc", levels, plots, values, hard=[0, 1])
    two = split_plot("ahbc", levels, plots, values + shifts[plots], hard=[0, 1])
    within = [(row.ss, other.ss) for row, other in zip(one.rows, two.rows, strict=True) if row.stratum == WITHIN]
    assert [a for a, _ in within] == pytest.approx([b for _, b in within], rel=1e-6)


def test_with_an_empty_cell_each_effect_gets_its_contribution_beyond_the_others() -> None:
    """By hand: additive values, so nothing is left for the interaction, whatever cell is missing."""
    rows = [
        (a, fp, prf)
        for a in range(2)
        for _ in range(2)
        for fp, prf in product(range(2), range(3))
        if (fp, prf) != (0, 2)
    ]
    levels = np.array(rows)
    values = 2.5 * levels[:, 1] + 4.0 * levels[:, 2]
    found = split_plot(("os", "fp", "prf"), levels, np.repeat(np.arange(4), 5), values, hard=[0])
    sign = "\N{MULTIPLICATION SIGN}"
    assert line(found, f"fp{sign}prf").ss == pytest.approx(0, abs=1e-9)
    assert line(found, f"fp{sign}prf").df == 1
    assert line(found, "fp").ss > 0 < line(found, "prf").ss
    assert line(found, "fp").ss == pytest.approx(4 * 2.5**2)  # of two pairs of cells each 2.5 apart, in four batches
