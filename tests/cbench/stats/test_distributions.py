"""Tails of distributions against scipy, from the middle to the limits of doubles."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import inf, isclose

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.stats.distributions import beta_sf, chi2_sf, f_sf, student_p, t_quantile


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


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 7.3, 10, 29, 39.5, 100, 499, 998, 999, 1000, 4999, 10**6])
def test_quantiles_are_scipys_in_twelve_digits(df: float) -> None:
    for p in (1e-4, 0.005, 0.025, 0.05, 0.25, 0.4, 0.5, 0.6, 0.9, 0.975, 0.995, 0.99995):
        assert t_quantile(p, df) == pytest.approx(scipy.stats.t.ppf(p, df), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("df", [1, 2, 3, 12, 2000])
def test_far_quantiles_are_finite_and_nearly_scipys(df: int) -> None:
    for p in (1e-12, 1e-7, 1 - 1e-7):
        assert t_quantile(p, df) == pytest.approx(scipy.stats.t.ppf(p, df), rel=1e-6)


def test_a_quantile_needs_a_probability_and_degrees_of_freedom() -> None:
    for p, df in ((0, 5), (1, 5), (0.5, 0), (0.9, -1)):
        with pytest.raises(ValueError, match=r"probability|degrees"):
            t_quantile(p, df)


@pytest.mark.parametrize("df1", [0.5, 1, 2, 3, 11, 50, 333])
@pytest.mark.parametrize("df2", [0.5, 1, 2, 4, 39, 1000, 59_999])
def test_tails_are_scipys_to_twelve_digits(df1: float, df2: float) -> None:
    for f in (1e-6, 0.1, 0.9, 1, 1.1, 2, 5, 23, 1000, 1e5):
        wanted = float(scipy.stats.f.sf(f, df1, df2))
        if wanted > 1e-290:
            assert f_sf(f, df1, df2) == pytest.approx(wanted, rel=1e-12)


@settings(deadline=None)
@given(st.floats(1e-3, 1e3), st.integers(1, 30), st.floats(1, 1e7))
def test_tails_of_an_even_number_are_their_finite_sum(f: float, half: int, df2: float) -> None:
    """The negative binomial sum: x^a (1 + a (1-x) + a (a+1)/2 (1-x)^2 + ...), with fifty digits."""
    with localcontext() as context:
        context.prec = 50
        a, ratio = Decimal(df2) / 2, Decimal(2 * half) * Decimal(f)
        x = Decimal(df2) / (Decimal(df2) + ratio)
        term, total = Decimal(1), Decimal(0)
        for place in range(half):
            total += term
            term *= (a + place) / (place + 1) * (1 - x)
        wanted = (a * x.ln()).exp() * total
    if wanted > Decimal("1e-280"):
        assert f_sf(f, 2 * half, df2) == pytest.approx(float(wanted), rel=1e-12)


def test_the_ends_of_f_are_exact_and_degrees_of_freedom_are_above_zero() -> None:
    assert (f_sf(0, 1, 1), f_sf(-1, 1, 1), f_sf(float("inf"), 1, 1)) == (1, 1, 0)
    assert f_sf(float("nan"), 1, 1) != f_sf(float("nan"), 1, 1)
    with pytest.raises(ValueError, match="above 0"):
        f_sf(1, 0, 1)
