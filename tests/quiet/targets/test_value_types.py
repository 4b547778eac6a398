"""Values are compared by their meaning, never as text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.targets.value_types import CHOICE, CPULIST, CPUMASK, MEANINGS, NUMBER, TEXT, plain, same


@pytest.mark.parametrize(
    ("kind", "a", "b"),
    [
        (CPULIST, "0-3", "0,1,2,3"),
        (CPULIST, "", "(null)"),
        (CPUMASK, "0f", "f"),
        (CPUMASK, "00000000,0000000f", "f"),
        (CHOICE, "always [madvise] never", "madvise"),
        (CHOICE, "[a] b", "[a] c"),
        (NUMBER, "0x10", "16"),
        (NUMBER, "-1", "-1"),
        (TEXT, "isolated", "isolated"),
    ],
)
def test_two_notations_of_one_value_are_the_same(kind: str, a: str, b: str) -> None:
    assert same(kind, a, b)
    assert same(kind, b, a)


@pytest.mark.parametrize(
    ("kind", "a", "b"),
    [
        (CPULIST, "0-3", "0-2"),
        (CPULIST, "f", "0-3"),
        (CPUMASK, "f", "7"),
        (CHOICE, "[always] madvise never", "madvise"),
        (NUMBER, "1", "2"),
        (NUMBER, "<unknown>", "0"),
        (TEXT, "isolated", "isolated invalid (no CPU)"),
        (TEXT, "1", "01"),
    ],
)
def test_two_values_are_not_the_same(kind: str, a: str, b: str) -> None:
    assert not same(kind, a, b)


KINDS = (TEXT, *MEANINGS)


@pytest.mark.parametrize("kind", KINDS)
def test_absent_equals_only_absent(kind: str) -> None:
    assert same(kind, None, None)
    assert not same(kind, None, "")
    assert not same(kind, "0", None)


@given(st.sampled_from(KINDS), st.text(alphabet="0123456789abx,-[] ", max_size=20))
def test_every_text_is_the_same_as_itself(kind: str, text: str) -> None:
    assert same(kind, text, text)


def test_a_choice_is_shown_without_its_brackets() -> None:
    assert plain(CHOICE, "always [madvise] never") == "madvise"
    assert plain(CHOICE, "madvise") == "madvise"
    assert plain(TEXT, "a [b]") == "a [b]"
