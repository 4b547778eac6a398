"""Tails of distributions against scipy, from the middle to where doubles end."""

from __future__ import annotations

from math import inf, isclose

import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from cbench.stats.distributions import beta_sf, chi2_sf, student_p


@given(st.floats(1e-12, 5000), st.integers(1, 3000))
def test_chi_squared_is_scipys(x: float, df: int) -> None:
    assert isclose(chi2_sf(x, df), scipy.stats.chi2.sf(x, df), rel_tol=1e-9, abs_tol=1e-290)


@given(st.floats(0, 100), st.one_of(st.integers(1, 3_000_000), st.floats(0.5, 1e6)))
def test_student_is_scipys(t: float, df: float) -> None:
    assert isclose(student_p(t, df), 2 * scipy.stats.t.sf(t, df), rel_tol=1e-8, abs_tol=1e-290)
    assert student_p(t, df) == student_p(-t, df)


@given(st.floats(0, 1), st.floats(0.5, 5000), st.floats(0.5, 5000))
def test_beta_is_scipys(x: float, a: float, b: float) -> None:
    assert isclose(beta_sf(x, a, b), scipy.stats.beta.sf(x, a, b), rel_tol=1e-8, abs_tol=1e-12)


def test_the_ends_are_0_and_1() -> None:
    assert chi2_sf(0, 3) == chi2_sf(-1, 1) == student_p(0, 7) == beta_sf(0, 1, 2) == beta_sf(-1, 1, 2) == 1
    assert student_p(inf, 3) == student_p(1e300, 3) == beta_sf(1, 2, 2) == beta_sf(2, 2, 2) == 0


def test_tables_have_these_values() -> None:
    assert round(chi2_sf(3.841459, 1), 6) == 0.05
    assert round(chi2_sf(18.307038, 10), 6) == 0.05
    assert round(student_p(2.228139, 10), 6) == 0.05
    assert round(student_p(12.706205, 1), 6) == 0.05


def test_without_degrees_of_freedom_there_is_no_distribution() -> None:
    for tail in (chi2_sf, student_p):
        with pytest.raises(ValueError, match="freedom"):
            tail(1.0, 0)
