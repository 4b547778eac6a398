"""Van Elteren's test against enumeration of all permutations within strata."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats as scipy_stats

from cbench.stats import stratified
from cbench.stats.stratified import signed_ranks, van_elteren
from cbench.stats.trials import Codes, Flags, Values


def by_enumeration(value: Values, second: Flags, stratum: Codes) -> float:
    """P of so large a sum, by scipy's ranks and all ways to mark so many values of each stratum."""
    seen, sums = 0.0, []
    for number in np.unique(stratum):
        ranks = scipy_stats.rankdata(value[stratum == number])
        marked, n = second[stratum == number], ranks.size
        expected = marked.sum() * (n + 1) / 2
        seen += (ranks[marked].sum() - expected) / (n + 1)
        chosen = itertools.combinations(ranks, int(marked.sum()))
        sums.append([(sum(each) - expected) / (n + 1) for each in chosen])
    every = np.array([sum(each) for each in itertools.product(*sums)])
    return float(np.mean(np.abs(every) >= abs(seen) - 1e-9))


def data(seed: int, tied: bool) -> tuple[Values, Flags, Codes]:
    draw = np.random.default_rng(seed)
    stratum = np.repeat([0, 1, 2], [5, 4, 6]).astype(np.int32)
    second = np.array([0, 0, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1, 1], dtype=bool)
    value = draw.integers(0, 5, 15).astype(float) if tied else draw.normal(size=15)
    return value, second, stratum


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_p_is_that_of_all_permutations_within_strata(seed: int, tied: bool) -> None:
    found = van_elteren(*data(seed, tied))
    assert found is not None
    assert found.p == pytest.approx(by_enumeration(*data(seed, tied)), abs=1e-12)


def test_with_one_stratum_it_is_wilcoxons_rank_sum() -> None:
    draw = np.random.default_rng(3)
    value, second = draw.normal(size=17), np.arange(17) < 8
    found = van_elteren(value, second, np.zeros(17, dtype=np.int32))
    assert found is not None
    exact = scipy_stats.mannwhitneyu(value[second], value[~second], method="exact")
    assert found.p == pytest.approx(exact.pvalue, rel=1e-9)


def test_signed_ranks_have_the_p_of_all_signs() -> None:
    draw = np.random.default_rng(5)
    away, stratum = draw.integers(-4, 7, 12).astype(float), np.repeat([0, 1], [5, 7]).astype(np.int32)
    scores = np.concatenate(
        [scipy_stats.rankdata(np.abs(away[stratum == each])) / (np.sum(stratum == each) + 1) for each in (0, 1)]
    )
    scores[away == 0] = 0
    signs = np.array(list(itertools.product((-1, 1), repeat=12)))
    expected = np.mean(np.abs(signs @ scores) >= abs(np.sign(away) @ scores) - 1e-9)
    found = signed_ranks(away, stratum)
    assert found is not None
    assert found.p == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.parametrize("hosts", [3, 40])
def test_the_approximation_is_close_to_counting(monkeypatch: pytest.MonkeyPatch, hosts: int) -> None:
    draw = np.random.default_rng(7)
    value = draw.normal(size=20 * hosts).round(1) + np.tile(np.arange(20) < 10, hosts) * 0.8 / hosts**0.5
    stratum, second = np.repeat(np.arange(hosts), 20).astype(np.int32), np.tile(np.arange(20) < 10, hosts)
    monkeypatch.setattr(stratified, "WORK", 10**9)
    counted = van_elteren(value, second, stratum)
    monkeypatch.setattr(stratified, "WORK", 0)
    close = van_elteren(value, second, stratum)
    assert counted is not None
    assert close is not None
    assert close.p == pytest.approx(counted.p, rel=0.1)


def test_another_level_of_a_stratum_changes_nothing() -> None:
    value, second, stratum = data(1, False)
    assert van_elteren(value + 1000 * stratum, second, stratum) == van_elteren(value, second, stratum)


def test_strata_without_both_samples_have_no_part() -> None:
    value, second, stratum = data(2, False)
    more = np.concatenate([stratum, [3, 3]]).astype(np.int32)
    whole = van_elteren(np.concatenate([value, [9.0, 8.0]]), np.concatenate([second, [True, True]]), more)
    assert whole == van_elteren(value, second, stratum)
    assert van_elteren(value[:2], second[:2], stratum[:2]) is None


def test_values_that_are_all_alike_say_nothing() -> None:
    found = van_elteren(np.ones(8), np.arange(8) % 2 == 0, np.repeat([0, 1], 4).astype(np.int32))
    assert found is not None
    assert found.p == 1.0
