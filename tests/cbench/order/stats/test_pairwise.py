"""Comparisons between tests that change with the order: against all pairs one by one."""

from __future__ import annotations

from math import nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.order.stats.pairwise import ChangedPair, across

NAMES = [str(number) for number in range(10_000)]
END = st.integers(0, 6)
INTERVAL = st.one_of(st.none(), st.tuples(END, END).map(sorted))
SERIES = st.lists(st.tuples(INTERVAL, INTERVAL), max_size=12)


def says(a: list[int], b: list[int]) -> str:
    return "above" if a[0] > b[1] else "below" if a[1] < b[0] else "cannot tell"


@given(SERIES, st.integers(1, 100))
def test_every_pair_is_checked_once(series: list[tuple[list[int] | None, list[int] | None]], most: int) -> None:
    bounds = [
        tuple(np.array([nan if each[order] is None else each[order][end] for each in series]) for end in (0, 1))
        for order in (0, 1)
    ]
    halves = [list(range(0, len(series), 2)), list(range(1, len(series), 2))]
    names = [str(number) for number in range(len(series))]
    found = across(names, (bounds[0][0], bounds[0][1]), (bounds[1][0], bounds[1][1]), halves, most)
    pairs, wanted = 0, []
    for members in halves:
        for place, a in enumerate(members):
            for b in members[place + 1 :]:
                if None in (*series[a], *series[b]):
                    continue
                pairs += 1
                fixed, random = (says(series[a][order], series[b][order]) for order in (0, 1))
                if fixed != random:
                    wanted.append(("cannot tell" in (fixed, random), a, b, fixed, random))
    wanted.sort()
    assert found.pairs == pairs
    assert found.changed == len(wanted)
    assert found.reversed == sum(not plain for plain, *_ in wanted)
    assert list(found.named) == [ChangedPair(str(a), str(b), *said) for _, a, b, *said in wanted[:most]]
    assert found.left_off == len(wanted) - len(found.named)


def test_of_many_pairs_those_that_are_reversed_are_named_first() -> None:
    n = 700
    low = np.arange(n, dtype=float)
    turned = low.copy()
    turned[[-2, -1]] = turned[[-1, -2]]
    wide = np.where(np.arange(n) < 600, 1000.0, 0.25)
    found = across(NAMES, (low, low + 0.25), (turned - (wide > 1), turned + wide), [range(n)], most=10)
    assert found.pairs == n * (n - 1) // 2
    assert found.reversed == 1
    assert found.named[0] == ChangedPair(str(n - 2), str(n - 1), "below", "above")
    assert [(each.a, each.b) for each in found.named[1:]] == [("0", str(b)) for b in range(1, 10)]
    assert found.changed > 100_000


@pytest.mark.slow
def test_ten_thousand_tests_take_seconds() -> None:
    rng = np.random.default_rng(1)
    low = rng.normal(size=10_000)
    found = across(NAMES, (low, low + 0.1), (low + 0.01, low + 0.12), [range(10_000)])
    assert found.pairs == 49_995_000
    assert len(found.named) == 1000
