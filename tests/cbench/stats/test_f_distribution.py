"""The F distribution's tail against scipy's and against sums that can be worked out exactly."""

from __future__ import annotations

from decimal import Decimal, localcontext

import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.stats.distributions import f_sf


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


def test_the_ends_are_exact_and_degrees_of_freedom_are_above_zero() -> None:
    assert (f_sf(0, 1, 1), f_sf(-1, 1, 1), f_sf(float("inf"), 1, 1)) == (1, 1, 0)
    assert f_sf(float("nan"), 1, 1) != f_sf(float("nan"), 1, 1)
    with pytest.raises(ValueError, match="above 0"):
        f_sf(1, 0, 1)
