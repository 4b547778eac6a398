"""In simulated studies without any effect the family-wise error is the requested one. The whole table, and the chances
to find effects, are printed by tests/benchmarks/order_simulations.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from cbench.order.stats.analysis import AnalysisRules, analyze
from cbench.order.stats.within_run_effects import Ordered, grouped
from cbench.stats.kruskal import of_sorted
from cbench.stats.trials import Trials
from tests.benchmarks.order_simulations import (
    EFFECTS,
    FAMILIES,
    NOISE,
    SEED,
    Draw,
    family_wise_error,
    kruskal,
    p_values,
    power,
    ranked,
)

MEASURED = {name: draw for name, draw in NOISE.items() if "2 levels" not in name}
STUDIES = 10_000


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, pytest.param(50, marks=pytest.mark.long)])
@pytest.mark.parametrize("draw", MEASURED.values(), ids=MEASURED)
def test_with_no_effect_4_to_5_and_a_half_percent_of_studies_give_an_alarm(draw: Draw, n: int) -> None:
    found = family_wise_error(draw, n, STUDIES, FAMILIES, SEED + n)
    assert all(4 <= share <= 5.5 for share in found[0])


@pytest.mark.slow
def test_chi_squared_alone_is_too_conservative_for_twenty_tests_of_twenty_runs() -> None:
    ours, chi2 = family_wise_error(NOISE["normal"], 20, STUDIES, (20,), SEED)
    assert chi2[0] < 4 < ours[0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 10])
def test_with_few_runs_the_error_stays_below_alpha(n: int) -> None:
    for draw in NOISE.values():
        found = family_wise_error(draw, n, 4000, FAMILIES, SEED)
        assert all(share < 5.9 for share in found[0])  # 5 and 2.6 standard errors


@pytest.mark.slow
def test_position_and_predecessor_are_found_where_the_plain_test_is_blind() -> None:
    shift, first, linear, same, other = EFFECTS
    assert power(shift, 1, 50, 500, SEED)[1] > 95
    for effect, column in ((first, 2), (linear, 2), (other, 3)):
        found = power(effect, 2, 50, 500, SEED)
        assert found[column] > 85
        assert found[0] < 30
    assert power(same, 1, 100, 500, SEED)[3] > 80


@pytest.mark.parametrize("name", NOISE)
def test_the_simulation_computes_the_same_as_the_analysis(name: str) -> None:
    rng = np.random.default_rng(1)
    rows = NOISE[name](rng, (60, 50))
    chi2, ours = p_values(rows, 20, np.full(60, 2.0))
    labels = rng.integers(0, 4, (60, 50)).astype(np.int32)
    by_label = kruskal(ranked(rows), labels, 4)
    for number, row in enumerate(rows):
        test = of_sorted([np.sort(row[:20]), np.sort(row[20:])])
        result = analyze(_study(row, 20), AnalysisRules()).results[0]
        within = grouped(Ordered.of(row), labels[number])
        assert test is not None
        assert within is not None
        assert np.isclose(chi2[number], test.p, rtol=1e-9)
        assert result.p_permutation is not None
        assert np.isclose(ours[number], result.p_permutation, rtol=1e-9)
        assert np.isclose(by_label[number], within.test.h, rtol=1e-9, atol=1e-12)


def _study(values: np.ndarray, fixed: int) -> Trials:
    none = np.zeros(values.size, dtype=np.int32)
    return Trials(("a",), none[:1], ("a",), none, np.arange(values.size) >= fixed, values)
