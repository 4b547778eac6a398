"""Budgets: from the command line, from a profile, and their precedence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.errors import UsageError
from quiet.noise import budgets
from quiet.noise.budgets import Budgets
from quiet.settings.profile import bundled, check, load

LIMIT = st.one_of(st.none(), st.floats(0, 100))
BUDGETS = st.builds(Budgets, LIMIT, LIMIT, LIMIT)


def test_texts_become_a_percentage_nanoseconds_and_a_rate() -> None:
    found = budgets.parse({"max_lost": "0.1%", "max_gap": "100us", "max_interrupts": 10})
    assert found == pytest.approx((0.1, 100_000, 10))


def test_an_omitted_budget_has_no_limit() -> None:
    assert budgets.parse({}) == budgets.NONE == Budgets(None, None, None)


def test_zero_is_a_limit_and_not_the_lack_of_one() -> None:
    assert budgets.parse({"max_lost": "0", "max_interrupts": "0"}) == Budgets(0, None, 0)


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "many", "", "\uff11", "\u0663"])
def test_a_wrong_rate_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(UsageError, match="--max-interrupts"):
        budgets.parse({"max_interrupts": text})


@pytest.mark.parametrize("text", ["\uff11ms", "99999999999999999999s", "1" * 5000 + "s"])
def test_a_time_with_other_digits_or_too_many_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--max-gap"):
        budgets.parse({"max_gap": text})


@pytest.mark.parametrize(
    ("key", "value"),
    [("max_lost", "2x"), ("max_gap", 100), ("max_gap", "0us"), ("max_interrupts", "-3"), ("max_lost", True)],
)
def test_a_wrong_budget_in_a_profile_is_named_by_its_key(key: str, value: object) -> None:
    with pytest.raises(UsageError, match=f"profile mine: key 'noise.{key}'"):
        check({"noise": {key: value}}, "profile mine", "mine")


def test_an_unknown_budget_in_a_profile_is_named() -> None:
    with pytest.raises(UsageError, match=r"unknown key 'noise\.max_noise'"):
        check({"noise": {"max_noise": "1%"}}, "profile mine", "mine")


@pytest.mark.parametrize("name", bundled())
def test_a_bundled_profile_says_what_quiet_is(name: str) -> None:
    assert load(name).budgets != budgets.NONE


@given(BUDGETS, BUDGETS)
def test_the_first_budgets_limits_take_precedence(first: Budgets, second: Budgets) -> None:
    merged = budgets.over(first, second)
    for name in Budgets._fields:
        mine, other = getattr(first, name), getattr(second, name)
        assert getattr(merged, name) == (other if mine is None else mine)


@given(BUDGETS)
def test_an_empty_budget_takes_the_others_limits(some: Budgets) -> None:
    assert budgets.over(budgets.NONE, some) == budgets.over(some, budgets.NONE) == some
