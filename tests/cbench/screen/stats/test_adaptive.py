"""The adaptive number of replicates: tolerances, when it stops, and what comes out."""

from __future__ import annotations

import numpy as np
import pytest

from cbench.screen.stats.adaptive import adaptive_bca, block, pixel, stable, tolerance, twice_error, written
from cbench.stats.bca import bca


@pytest.mark.parametrize(
    ("u", "digits", "c", "power", "delta"),
    [
        (0.00035, 2, 35, -5, 0.000005),
        (0.00035, 1, 4, -4, 0.00005),
        (2.0, 2, 20, -1, 0.05),
        (0.0123, 2, 12, -3, 0.0005),
        (0.0123, 1, 1, -2, 0.005),
        (0.0996, 1, 1, -1, 0.05),
        (0.0996, 2, 10, -2, 0.005),
        (9.99e7, 2, 10, 7, 0.5e7),
    ],
)
def test_the_tolerance_is_half_a_unit_of_the_last_digit(
    u: float, digits: int, c: int, power: int, delta: float
) -> None:
    assert written(u, digits) == (c, power)
    assert tolerance(u, digits) == pytest.approx(delta, rel=1e-12)


@pytest.mark.parametrize(("level", "size"), [(0.95, 10_000), (0.99, 10_000), (0.995, 20_000), (0.999, 100_000)])
def test_a_block_has_ten_thousand_replicates_or_a_hundred_beyond_the_ends(level: float, size: int) -> None:
    assert block(level) == size


ENDS = (9.985, 9.984, 9.986, 9.985)


def test_doubled_errors_of_block_means_are_those_of_the_example() -> None:
    found = [twice_error(ENDS[:h]) for h in (2, 3, 4)]
    assert found == pytest.approx([0.0010000, 0.0011547, 0.0008165], abs=5e-8)


@pytest.mark.parametrize(("delta", "at"), [(0.0005, None), (0.0009, 4), (0.005, 2)])
def test_it_stops_where_the_example_does(delta: float, at: int | None) -> None:
    rows = [(1.0, 2.0, end, 3.0) for end in ENDS]
    stops = [h for h in range(1, 5) if stable(rows[:h], delta)]
    assert (stops[0] if stops else None) == at


def test_one_block_is_never_stable() -> None:
    assert not stable([(1.0, 1.0, 1.0, 1.0)], 1e9)


def test_every_one_of_the_four_has_to_be_stable() -> None:
    for column in range(4):
        rows = [tuple(float(h if at == column else 1) for at in range(4)) for h in (1, 2, 3)]
        assert not stable(rows, 0.5)


def test_a_pixel_is_the_axis_over_its_pixels() -> None:
    assert pixel(5.0, 500) == 0.01
    for span, pixels in ((0, 10), (1, 0)):
        with pytest.raises(ValueError, match="axis"):
            pixel(span, pixels)


VALUES = np.random.default_rng(4).lognormal(size=60)


def test_a_smaller_tolerance_takes_more_replicates_and_all_of_them_make_the_result() -> None:
    coarse, fine = adaptive_bca(VALUES, delta=0.05), adaptive_bca(VALUES, delta=0.005)
    assert coarse.replicates == 20_000
    assert fine.replicates > coarse.replicates
    assert fine.replicates % 10_000 == 0
    long = bca(VALUES, replicates=1_000_000, seed=9)
    assert (fine.low, fine.high) == pytest.approx((long.low, long.high), abs=0.01)
    assert (coarse.why, fine.why) == (None, None)


def test_two_digits_take_more_replicates_than_one() -> None:
    assert adaptive_bca(VALUES, digits=2).replicates > adaptive_bca(VALUES, digits=1).replicates


def test_where_the_most_replicates_are_not_enough_it_says_how_stable_they_are() -> None:
    found = adaptive_bca(VALUES, delta=1e-9, most=30_000)
    assert found.replicates == 30_000
    assert found.low is not None
    assert str(found.why).startswith("after 30,000 replicates stable within 0.0")
    assert str(found.why).endswith("not within 1e-09")
    assert "one block" in str(adaptive_bca(VALUES, most=500).why)


def test_samples_without_an_interval_have_none_here_either() -> None:
    assert "3 values are needed" in str(adaptive_bca([1, 2]).why)
    assert adaptive_bca([2, 2, 2]).width == 0


@pytest.mark.parametrize("wrong", [{"digits": 0}, {"delta": 0}, {"delta": float("nan")}, {"level": 2}])
def test_what_makes_no_sense_is_refused(wrong: dict) -> None:
    with pytest.raises(ValueError, match=r"needed|level"):
        adaptive_bca(VALUES, **wrong)
