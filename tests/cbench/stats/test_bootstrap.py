"""However bootstrap draws are made, they follow the multinomial distribution, which is enumerated here."""

from __future__ import annotations

from itertools import product
from math import factorial

import numpy as np
import pytest
import scipy.stats

from cbench.stats import bootstrap
from cbench.stats.batched_intervals import counts
from cbench.stats.bca import generator

REPLICATES = 200_000


def multinomial(n: int) -> dict[tuple[int, ...], float]:
    """The chance of each set of counts of n draws from n values."""
    every = (each for each in product(range(n + 1), repeat=n) if sum(each) == n)
    return {each: factorial(n) / np.prod([factorial(k) for k in each]) / n**n for each in every}


def fits(found: np.ndarray, chances: dict[float, float]) -> float:
    """The p of a chi-squared test of drawn values against their chances."""
    values, times = np.unique(found, return_counts=True)
    assert set(values) <= set(chances)
    seen = dict(zip(values.tolist(), times.tolist(), strict=True))
    often = [value for value, chance in chances.items() if chance * found.size >= 5]
    observed = [seen.get(value, 0) for value in often]
    expected = [chances[value] * found.size for value in often]
    rest, left = found.size - sum(observed), found.size - sum(expected)
    if left > 1e-6 * found.size:
        observed, expected = [*observed, rest], [*expected, left]
    return float(scipy.stats.chisquare(observed, expected, sum_check=False).pvalue)


@pytest.mark.parametrize("n", [4, 5, 6])
@pytest.mark.parametrize("how", ["poisson", "plain", "counts"])
def test_every_set_of_counts_occurs_with_its_multinomial_probability(n: int, how: str) -> None:
    row = 10.0 ** np.arange(n)  # the digits of a sum are the counts
    rng = generator(11, n)
    if how == "poisson":
        found = bootstrap.counted_sums(row, REPLICATES, rng)
    elif how == "plain":
        found = bootstrap.plain_sums(row, REPLICATES, rng)
    else:
        found = counts(n, REPLICATES, rng) @ row
    chances = {float(np.dot(row, each)): chance for each, chance in multinomial(n).items()}
    assert sum(chances.values()) == pytest.approx(1)
    assert fits(found, chances) > 1e-4


def test_how_often_one_of_300_values_is_drawn_is_binomial_for_each_of_four_that_are_drawn_together() -> None:
    for at in (0, 1, 2, 3, 299):
        row = np.zeros(300)
        row[at] = 1
        found = bootstrap.sums(row, REPLICATES // 4, generator(3, at))
        chances = {float(k): float(scipy.stats.binom.pmf(k, 300, 1 / 300)) for k in range(301)}
        assert fits(found, chances) > 1e-4


def test_two_values_are_drawn_as_dependently_as_a_multinomial_has_them() -> None:
    row = np.zeros(257)
    row[5], row[6], row[200] = 1, 100, 10_000
    found = bootstrap.sums(row, 100_000, generator(1)).astype(int)
    parts = np.stack([found % 100, found // 100 % 100, found // 10_000])
    wanted = np.full((3, 3), -1 / 257) + np.eye(3)
    assert np.cov(parts) == pytest.approx(wanted, abs=0.015)


def test_the_cells_and_their_remainders_add_up_to_the_poisson_probabilities() -> None:
    cells = bootstrap.table(0.97)
    chances = np.zeros(1 << 21)
    packed, times = np.unique(cells.cells[: cells.rare], return_counts=True)
    key = lambda four: (four[..., None] >> np.arange(0, 32, 8) & 255) @ 21 ** np.arange(4)  # noqa: E731
    chances[key(packed)] += times / bootstrap.CELLS
    left = 1 - cells.rare / bootstrap.CELLS
    packed, times = np.unique(cells.left[: cells.left_rare], return_counts=True)
    chances[key(packed)] += left * times / bootstrap.CELLS
    last = np.diff(cells.cumulated, prepend=0) / cells.cumulated[-1]
    np.add.at(chances, key(cells.last), left * (1 - cells.left_rare / bootstrap.CELLS) * last)
    for four in product((0, 1, 2, 5, 9), repeat=4):
        wanted = float(np.prod(scipy.stats.poisson.pmf(four, 0.97)))
        assert chances[key(np.array(four) @ 256 ** np.arange(4))] == pytest.approx(wanted, rel=1e-9, abs=1e-16)


@pytest.mark.slow
@pytest.mark.parametrize("n", [255, 256, 257, 258, 259, 5000])
def test_means_and_spreads_of_the_sums_are_those_of_bootstrap_samples(n: int) -> None:
    row = np.random.default_rng(n).lognormal(size=n)
    found = bootstrap.sums(row, 20_000, generator(n))
    spread = np.sqrt(n) * row.std()
    assert found.size == 20_000
    assert found.mean() == pytest.approx(row.sum(), abs=5 * spread / np.sqrt(20_000))
    assert found.std() == pytest.approx(spread, rel=0.03)
    plain = bootstrap.plain_sums(row, 20_000, generator(n, 1))
    assert scipy.stats.ks_2samp(found, plain).pvalue > 1e-4


@pytest.mark.parametrize("replicates", [1, 2, 63, 64, 65, 1000])
def test_the_requested_number_of_sums_is_drawn(replicates: int) -> None:
    assert bootstrap.sums(np.ones(300), replicates, generator(0)).tolist() == [300.0] * replicates
