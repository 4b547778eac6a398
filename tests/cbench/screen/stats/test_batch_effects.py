"""Boot dependency: the worked examples, unequal boots, and values without any spread."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

from cbench.screen.stats.batch_effects import boot_check

A = np.array([7.10, 7.12, 7.11, 7.15, 7.09])
B = np.array([7.11, 7.10, 7.13, 7.14, 7.12])
C = np.array([7.20, 7.22, 7.19, 7.25, 7.21])
D = np.array([7.30, 7.31, 7.29, 7.35, 7.33])
BOOTS = {"0": {"a": A, "b": B}, "1": {"c": C, "d": D}}


def test_the_boots_of_the_first_level_are_alike_as_printed() -> None:
    found, _ = boot_check(BOOTS)
    assert (found.level, found.batches, found.n) == ("0", ("a", "b"), (5, 5))
    assert (round(found.h, 4), round(found.p, 4)) == (0.4, 0.5271)
    assert (round(found.f or 0, 5), round(found.p_f or 0, 4)) == (0.23077, 0.6438)
    assert (found.ms_between, found.ms_within) == (pytest.approx(9.0e-5), pytest.approx(3.9e-4))
    assert (found.var_boot, found.icc, found.depends) == (0, 0, False)


def test_the_boots_of_the_second_level_differ_as_printed() -> None:
    _, found = boot_check(BOOTS)
    assert (found.level, found.batches) == ("1", ("c", "d"))
    assert (round(found.h, 4), round(found.p, 7)) == (6.8182, 0.0090234)
    assert (round(found.f or 0, 4), f"{found.p_f:.4e}") == (46.8649, "1.3155e-04")
    assert (found.ms_between, found.ms_within) == (pytest.approx(0.02601), pytest.approx(5.55e-4))
    assert (round(found.var_boot, 6), round(found.icc or 0, 5)) == (0.005091, 0.90170)
    assert found.p_holm == pytest.approx(2 * found.p)
    assert found.depends


def test_the_hard_factor_itself_does_not_look_like_a_boot() -> None:
    """Boots a and b at one level, both 0.1 lower at the other: nothing depends on the boot."""
    found = boot_check({"0": {"a": A, "b": B}, "1": {"c": A + 0.1, "d": B + 0.1}})
    assert not any(each.depends for each in found)
    assert boot_check({"": {"a": A, "b": B, "c": A + 0.1, "d": B + 0.1}})[
        0
    ].depends  # when the level is left out of account


def test_unequal_boots_have_the_variance_components_of_the_book() -> None:
    (found,) = boot_check({"": {"a": A, "b": B[:3], "c": np.concatenate([C, [np.nan]])}})
    f, p = scipy.stats.f_oneway(A, B[:3], C)
    h, p_h = scipy.stats.kruskal(A, B[:3], C)
    assert (found.f, found.p_f) == (pytest.approx(f), pytest.approx(p))
    assert (found.h, found.p) == (pytest.approx(h), pytest.approx(p_h))
    n0 = (13 - (25 + 9 + 25) / 13) / 2
    assert found.n == (5, 3, 5)
    assert found.var_boot == pytest.approx((found.ms_between - found.ms_within) / n0)


def test_boots_that_are_constant_and_different_depend_wholly() -> None:
    (found,) = boot_check({"": {"a": np.full(20, 5.0), "b": np.full(20, 6.0)}})
    assert (found.f, found.p_f, found.ms_within, found.icc) == (None, None, 0, 1)
    assert found.depends


def test_values_that_are_all_alike_depend_on_nothing() -> None:
    (found,) = boot_check({"": {"a": np.full(5, 0.1), "b": np.full(5, 0.1)}})
    assert (found.p, found.icc, found.depends) == (1, None, False)


def test_a_level_with_one_boot_or_single_values_is_left_out() -> None:
    assert boot_check({"0": {"a": A}, "1": {"b": B[:1], "c": C[:1]}}) == ()
    assert boot_check({"": {"a": A, "b": np.array([])}}) == ()
