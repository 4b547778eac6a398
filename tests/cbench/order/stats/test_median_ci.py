"""Ranks of the median's interval: the published tables, and the definitions by counting everything."""

from __future__ import annotations

from math import isclose

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cbench.order.stats.median_ci import EXACT, NARROWEST, NORMAL, PUBLISHED, RULES, coverage, ranks

TABLE = [
    # n, exact and its coverage, narrowest and its coverage, normal, published and its coverage; at 95 %
    (5, None, None, None, None, None, (1, 5), 0.9375),
    (6, (1, 6), 0.9688, (1, 6), 0.9688, None, (1, 6), 0.9688),
    (8, (1, 8), 0.9922, (1, 7), 0.9609, (1, 8), (2, 8), 0.9609),
    (10, (2, 9), 0.9785, (2, 9), 0.9785, (1, 10), (2, 10), 0.9883),
    (12, (3, 10), 0.9614, (3, 10), 0.9614, (2, 11), (3, 12), 0.9805),
    (20, (6, 15), 0.9586, (6, 15), 0.9586, (5, 16), (6, 17), 0.9780),
    (30, (10, 21), 0.9572, (10, 21), 0.9572, (9, 22), (10, 23), 0.9760),
    (36, (12, 25), 0.9712, (12, 24), 0.9530, (12, 25), (13, 26), 0.9617),
    (50, (18, 33), 0.9672, (18, 32), 0.9511, (18, 33), (19, 34), 0.9599),
    (70, (27, 44), 0.9586, (27, 44), 0.9586, (26, 45), (27, 46), 0.9735),
    (71, (27, 45), 0.9681, (27, 44), 0.9556, (27, 45), (28, 46), 0.9631),
    (100, (40, 61), 0.9648, (40, 60), 0.9540, (40, 61), (41, 62), 0.9611),
    (120, (49, 72), 0.9647, (49, 71), 0.9549, (49, 72), (50, 73), 0.9616),
    (240, (105, 136), 0.9548, (105, 136), 0.9548, (104, 137), (105, 138), 0.9656),
    (600, (276, 325), 0.9546, (276, 325), 0.9546, (275, 326), (276, 327), 0.9621),
]
LEVELS = st.floats(0.5, 0.9999)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"n={row[0]}")
def test_the_ranks_at_95_percent_are_those_of_the_table(row: tuple) -> None:
    n, exact, exact_covers, narrow, narrow_covers, normal, published, published_covers = row
    assert [ranks(n, 0.95, rule) for rule in RULES] == [exact, narrow, normal, published]
    for found, covers in ((exact, exact_covers), (narrow, narrow_covers), (published, published_covers)):
        if found is not None:
            assert isclose(coverage(n, *found), covers, abs_tol=5e-5)


@given(st.integers(0, 80), LEVELS)
def test_the_exact_ranks_are_the_innermost_symmetric_ones_that_keep_the_level(n: int, level: float) -> None:
    tail = scipy.stats.binom(n, 0.5).cdf
    fitting = [j for j in range(1, n // 2 + 1) if tail(j - 1) <= (1 - level) / 2 * (1 + 1e-12)]
    assert ranks(n, level, EXACT) == ((fitting[-1], n + 1 - fitting[-1]) if fitting else None)


@given(st.integers(0, 60), LEVELS)
def test_the_narrowest_ranks_are_the_closest_that_keep_the_level(n: int, level: float) -> None:
    every = [(k - j, -coverage(n, j, k), j, k) for j in range(1, n + 1) for k in range(j + 1, n + 1)]
    fitting = sorted((width, round(covers, 12), j, k) for width, covers, j, k in every if -covers >= level)
    assert ranks(n, level, NARROWEST) == (fitting[0][2:] if fitting else None)


@given(st.integers(1, 500), LEVELS, st.sampled_from(RULES))
def test_ranks_lie_in_the_sample_and_wider_levels_give_wider_ones(n: int, level: float, rule: str) -> None:
    found, wider = ranks(n, level, rule), ranks(n, (1 + level) / 2, rule)
    if found is not None:
        assert 1 <= found[0] <= found[1] <= n
    if wider is not None:
        assert found is not None
        assert wider[1] - wider[0] >= found[1] - found[0]


@pytest.mark.parametrize("rule", [EXACT, NARROWEST])
@pytest.mark.parametrize("n", [999, 1000, 1001, 5000, 100_000])
def test_large_samples_have_the_ranks_that_scipys_binomial_gives(n: int, rule: str) -> None:
    found = ranks(n, 0.95, rule)
    assert found is not None
    tail = scipy.stats.binom(n, 0.5).cdf
    assert tail(found[1] - 1) - tail(found[0] - 1) >= 0.95
    assert tail(found[1] - 2) - tail(found[0]) < 0.95


def test_an_interval_that_is_not_attainable_is_none_and_says_how_many_it_needs() -> None:
    corrected = 1 - 0.05 / 20
    assert (ranks(9, corrected), ranks(10, corrected)) == (None, (1, 10))
    assert isclose(coverage(10, 1, 10), 0.998046875)
    assert (ranks(5, 0.95), ranks(6, 0.95)) == (None, (1, 6))
    assert ranks(0, 0.95, PUBLISHED) is None


def test_no_level_and_no_rule() -> None:
    with pytest.raises(ValueError, match="level"):
        ranks(10, 1.0)
    with pytest.raises(ValueError, match="rule"):
        ranks(10, 0.95, "widest")
    assert ranks(10, 0.95, NORMAL) == (1, 10)
