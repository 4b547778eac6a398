"""Corrections for many tests: worked examples, and the procedures as their articles describe them."""

from __future__ import annotations

from itertools import pairwise
from math import isclose, isnan, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.stats.multiple_testing import BONFERRONI, HOLM, NONE, adjusted, significant

CHANCES = st.lists(st.floats(0, 1), min_size=1, max_size=30)
ALPHAS = st.floats(0.001, 0.5)
RULES = (NONE, HOLM, BONFERRONI)
BENJAMINI_HOCHBERG = [
    *(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459),
    *(0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000),
]
"""The example of their article (1995), section 3.2: of 15 the Bonferroni method finds 3."""


def test_the_example_of_benjamini_and_hochberg() -> None:
    found = {rule: int(significant(BENJAMINI_HOCHBERG, 0.05, rule).sum()) for rule in RULES}
    assert found == {BONFERRONI: 3, HOLM: 3, NONE: 9}


def test_holms_adjusted_values_by_hand() -> None:
    assert np.allclose(adjusted([0.01, 0.04, 0.03, 0.005], HOLM), [0.03, 0.06, 0.06, 0.02], rtol=1e-14)
    assert np.allclose(adjusted([0.01, 0.04, 0.03, 0.005], BONFERRONI), [0.04, 0.16, 0.12, 0.02], rtol=1e-14)


@given(CHANCES, ALPHAS)
def test_holm_rejects_from_the_smallest_p_value_until_one_is_too_large(p: list[float], alpha: float) -> None:
    wanted = [False] * len(p)
    for step, number in enumerate(sorted(range(len(p)), key=lambda i: p[i])):
        if not (len(p) - step) * p[number] < alpha:
            break
        wanted[number] = True
    assert significant(p, alpha, HOLM).tolist() == wanted


@given(CHANCES, ALPHAS)
def test_bonferroni_is_never_stronger_than_holm(p: list[float], alpha: float) -> None:
    three = [adjusted(p, rule) for rule in RULES]
    assert all((one <= other * (1 + 1e-12)).all() for one, other in pairwise(three))
    assert significant(p, alpha, BONFERRONI).tolist() == [len(p) * each < alpha for each in p]


@pytest.mark.parametrize("rule", RULES)
def test_untested_effects_stay_out_of_the_family(rule: str) -> None:
    with_gaps = adjusted([nan, 0.01, nan, 0.02], rule)
    assert with_gaps[[1, 3]].tolist() == adjusted([0.01, 0.02], rule).tolist()
    assert isnan(with_gaps[0])
    assert not significant([nan, 0.9], 0.05, rule).any()
    assert adjusted([], rule).size == 0


def test_at_alpha_itself_nothing_is_significant() -> None:
    assert not significant([0.025, 0.9], 0.05, BONFERRONI).any()
    assert isclose(adjusted([0.025, 0.9])[0], 0.05)
