"""Order statistics of pairwise sums, compared with all sums; and their cost if very many sums are equal."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from cbench.order.stats.pairwise_sums import PairwiseSums

Values = NDArray[np.float64]


def samples(size: int, digits: int, seed: int) -> tuple[Values, Values]:
    draw = np.random.default_rng(seed)
    return np.sort(np.round(draw.normal(100, 3, size), digits)), np.sort(
        np.round(draw.normal(101, 3, size + 7), digits)
    )


@pytest.mark.parametrize("digits", [0, 1, 9])
@pytest.mark.parametrize("logarithms", [False, True])
def test_sums_are_those_of_the_whole_list_however_many_are_equal(digits: int, logarithms: bool) -> None:
    first, second = samples(180, digits, digits)
    if logarithms:
        first, second = np.log(first), np.log(second)
    every = np.sort((second[:, None] - first[None, :]).ravel())
    found = PairwiseSums.of_differences(first, second)
    assert found.size == every.size
    for rank in (0, 1, every.size // 9, every.size // 2, every.size - 2, every.size - 1):
        assert found.at(rank) == pytest.approx(every[rank], abs=1e-13)
    assert found.median() == pytest.approx(np.median(every), abs=1e-13)
    own = np.sort((first[:, None] + first[None, :])[np.triu_indices(first.size)])
    assert PairwiseSums.of_itself(first).median() == pytest.approx(np.median(own), abs=1e-12)


@pytest.mark.slow
def test_equal_sums_are_counted_and_not_listed() -> None:
    first, second = samples(200_000, 0, 1)
    begun = time.process_time()
    assert PairwiseSums.of_differences(first, second).median() == 1
    assert PairwiseSums.of_differences(first, first).median() == 0
    assert time.process_time() - begun < 30  # listing them would need hundreds of gigabytes
