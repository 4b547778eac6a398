"""Times and shares as people write and read them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.errors import UsageError
from quiet.noise import budgets


@pytest.mark.parametrize(
    ("text", "ns"),
    [("100ns", 100), ("5us", 5_000), ("5µs", 5_000), ("1.5ms", 1_500_000), ("2s", 2e9), (" 7 us ", 7_000)],
)
def test_a_time_is_a_number_with_a_unit(text: str, ns: float) -> None:
    assert budgets.parse_ns(text, "--max-gap") == pytest.approx(ns)


@pytest.mark.parametrize("text", ["", "5", "us", "-5us", "5 minutes", "0ns", "0.0us", "1e3ns", "nan", "inf", "5us,"])
def test_anything_else_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"--max-gap .*not a time"):
        budgets.parse_ns(text, "--max-gap")


@pytest.mark.parametrize(("text", "seconds"), [("10", 10), ("0", 0), ("0.5", 0.5), ("500ms", 0.5), ("2s", 2)])
def test_a_duration_is_in_seconds_unless_it_has_a_unit(text: str, seconds: float) -> None:
    assert budgets.parse_seconds(text, "--duration") == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["-1", "nan", "", "abc", "5 minutes", "-inf"])
def test_a_wrong_duration_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(UsageError, match="--duration"):
        budgets.parse_seconds(text, "--duration")


@pytest.mark.parametrize(("text", "share"), [("0.1%", 0.1), ("0.1", 0.1), ("0", 0), ("100%", 100), (" 5 % ", 5)])
def test_a_share_is_a_percentage_with_or_without_its_sign(text: str, share: float) -> None:
    assert budgets.parse_percent(text, "--max-lost") == pytest.approx(share)


@pytest.mark.parametrize("text", ["-0.1", "100.1", "200", "abc", "", "%", "nan", "5%%"])
def test_a_wrong_share_is_refused_by_the_options_name(text: str) -> None:
    with pytest.raises(UsageError, match=r"--max-lost .*percentage"):
        budgets.parse_percent(text, "--max-lost")


@pytest.mark.parametrize(
    ("ns", "shown"),
    [
        (0, "0 ns"),
        (87.4, "87 ns"),
        (999, "999 ns"),
        (999.9, "1.00 us"),
        (1_250, "1.25 us"),
        (9_600, "9.60 us"),
        (99_700, "99.7 us"),
        (999_900, "1.00 ms"),
        (4_050_000, "4.05 ms"),
        (12_340_000_000, "12.3 s"),
        (1_234_000_000_000, "1234 s"),
    ],
)
def test_a_time_is_shown_with_three_digits(ns: float, shown: str) -> None:
    assert budgets.show(ns) == shown


@given(st.floats(1_000, 990e9))
def test_a_displayed_time_has_three_digits_and_is_read_back_approximately(ns: float) -> None:
    shown = budgets.show(ns)
    assert len(re.sub(r"\D", "", shown)) == 3
    assert budgets.parse_ns(shown, "") == pytest.approx(ns, rel=0.005)


@given(st.integers(1, 999))
def test_a_whole_number_of_nanoseconds_is_read_back_as_itself(ns: int) -> None:
    assert budgets.parse_ns(budgets.show(ns), "") == ns
