"""The columns of a study: rows of a series, predecessors, effects of a failure."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.order.stats.analysis import RUN, AnalysisRules, dropped
from cbench.stats.trials import START, Trials


def trials(rows: list[tuple[int, int, int, float]], series: int = 4) -> Trials:
    """Rows are series, run, position, value; odd runs are random, and series 2 and 3 are two metrics of one test."""
    columns = list(zip(*rows, strict=True)) if rows else [(), (), (), ()]
    run = np.array(columns[1], dtype=np.int32)
    return Trials(
        tuple(f"s{number}" for number in range(series)),
        np.array([0, 1, 2, 2][:series], dtype=np.int32),
        ("a", "b", "c"),
        np.array(columns[0], dtype=np.int32),
        run % 2 == 1,
        np.array(columns[3], dtype=float),
        run,
        np.array(columns[2], dtype=np.int32),
    )


ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 5), st.just(1.0)), unique_by=lambda row: row[1:3]
)


@given(ROWS)
def test_the_predecessor_is_the_test_of_the_last_earlier_position_of_the_run(
    rows: list[tuple[int, int, int, float]],
) -> None:
    found = trials(rows).predecessors()
    assert found is not None
    for number, (_, run, position, _) in enumerate(rows):
        before = [row for row in rows if row[1] == run and row[2] < position]
        wanted = [0, 1, 2, 2][max(before, key=lambda row: row[2])[0]] if before else START
        assert found[number] == wanted


@pytest.mark.slow
@given(st.permutations(range(12)), st.permutations(range(3)))
def test_without_gaps_the_short_way_gives_the_same(shuffled: list[int], order: list[int]) -> None:
    rows = [(order[place], run, place, 1.0) for run in range(4) for place in range(3)]
    rows = [rows[number] for number in shuffled]
    found = trials(rows).predecessors()
    assert found is not None
    for number, (_, run, place, _) in enumerate(rows):
        before = next((row[0] for row in rows if row[1] == run and row[2] == place - 1), START)
        assert found[number] == (2 if before == 3 else before)


def test_the_metrics_of_a_trial_have_the_same_predecessor() -> None:
    rows = [(0, 0, 0, 1.0), (2, 0, 1, 1.0), (3, 0, 1, 1.0), (1, 0, 2, 1.0)]
    found = trials(rows).predecessors()
    assert found is not None
    assert found.tolist() == [START, 0, 0, 2]


@given(ROWS)
def test_each_series_has_its_rows_in_their_order(rows: list[tuple[int, int, int, float]]) -> None:
    made = trials(rows)
    wanted = [[number for number, row in enumerate(rows) if row[0] == series] for series in range(4)]
    together, slices = made.grouped()
    assert [together.run[each].tolist() for each in slices] == [
        [rows[number][1] for number in numbers] for numbers in wanted
    ]
    assert all(one.stop == other.start for one, other in pairwise(slices))


@pytest.mark.parametrize(
    ("rules", "wanted"),
    [
        (AnalysisRules(), [1, 4]),
        (AnalysisRules(failures=RUN), [0, 1, 4, 5]),
        (AnalysisRules(failures=RUN, published=True), [0, 1, 4]),
        (AnalysisRules(published=True), [0, 1, 4]),
    ],
)
def test_a_failure_takes_its_trial_its_run_or_as_published_a_fixed_run(rules: AnalysisRules, wanted: list[int]) -> None:
    rows = [
        (s, run, s, np.nan if (run, s) in ((0, 1), (1, 0)) else 1.0)
        for run, s in [(0, 0), (0, 1), (2, 0), (2, 1), (1, 0), (1, 1), (3, 0), (3, 1)]
    ]
    found = dropped(trials(rows), rules)
    assert found is not None
    assert np.flatnonzero(found).tolist() == wanted


def test_where_nothing_failed_nothing_is_dropped() -> None:
    assert dropped(trials([(0, 0, 0, 1.0)]), AnalysisRules(failures=RUN)) is None
    empty = trials([]).predecessors()
    assert empty is not None
    assert empty.size == 0
