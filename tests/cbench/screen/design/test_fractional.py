"""Full factorials and fractions: relations, resolutions and aliases of the books, and invalid generators."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.screen.design.factorial import effect_name, full_factorial, named
from cbench.screen.design.fractional import Fraction, Word, best_fraction, fraction
from tests.cbench.screen.design.designs import COMPLETE, FACTORS, factors

TIMES = "\N{MULTIPLICATION SIGN}"


def signs(design: Fraction) -> list[list[int]]:
    return [[2 * run[each] - 1 for run in design.treatments] for each in range(len(design.names))]


def holds(design: Fraction, word: Word) -> bool:
    """Whether the word's product is its sign in every run."""
    columns = signs(design)
    products = set()
    for run in range(len(design.treatments)):
        value = 1
        for factor in word.factors:
            value *= columns[factor][run]
        products.add(value)
    return products == {word.sign}


def test_the_complete_design_has_twelve_treatments_in_order() -> None:
    assert len(COMPLETE) == 12
    assert COMPLETE[:4] == ((0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 1, 0))
    assert named(FACTORS, COMPLETE[5]) == "os=0 fp=1 prf=2"
    assert effect_name(("os", "fp"), (0, 1)) == f"os{TIMES}fp"


def test_excluded_treatments_are_not_in_a_design() -> None:
    found = full_factorial(FACTORS, excluded=lambda treatment: treatment[1:] == (0, 2))
    assert len(found) == 10
    with pytest.raises(ValueError, match="every treatment is excluded"):
        full_factorial(FACTORS, excluded=lambda treatment: True)


def test_too_many_treatments_are_refused() -> None:
    with pytest.raises(ValueError, match="100000 treatments; at most 10000"):
        full_factorial(factors("abcde", 10))


def test_half_a_fraction_of_four_factors_has_the_words_of_the_book() -> None:
    found = fraction("abcd", ["D=ABC"])
    assert (len(found.treatments), found.resolution) == (8, 4)
    assert found.defining == (Word((0, 1, 2, 3), 1),)
    assert found.words() == (
        "8 of 16 treatments (2^(4-1)), resolution IV: main effects are clear of two-factor interactions, "
        "but some of these are aliased with each other",
        "generators: d=a*b*c; defining relation: I = a*b*c*d",
        f"only this sum can be estimated: a{TIMES}b + c{TIMES}d",
        f"only this sum can be estimated: a{TIMES}c + b{TIMES}d",
        f"only this sum can be estimated: a{TIMES}d + b{TIMES}c",
    )


def test_the_other_half_has_the_other_signs_and_no_common_treatment() -> None:
    one, other = fraction("abcd", ["D=ABC"]), fraction("abcd", ["D=-ABC"])
    assert not set(one.treatments) & set(other.treatments)
    assert len(set(one.treatments) | set(other.treatments)) == 16
    assert f"only this sum can be estimated: a{TIMES}b - c{TIMES}d" in other.words()


def test_the_saturated_design_of_seven_factors_has_the_aliases_of_the_book() -> None:
    """2^(7-4) with D=AB, E=AC, F=BC, G=ABC (Box, Hunter, Hunter, chapter 6): A is seen with BD, CE and FG."""
    found = fraction("ABCDEFG", ["D=AB", "E=AC", "F=BC", "G=ABC"])
    assert (len(found.treatments), found.resolution, len(found.defining)) == (8, 3, 15)
    aliases = {effect: [word.factors for word in others] for effect, others in found.aliases()}
    assert aliases[0,] == [(1, 3), (2, 4), (5, 6)]
    assert set(aliases) == {(each,) for each in range(7)}  # every interaction is in the set of a main effect
    assert "main effects cannot be separated from two-factor interactions" in found.words()[0]


def test_generators_may_have_the_factors_names() -> None:
    names = ("opt", "aslr", "governor", "lto")
    for text in ("lto = opt*aslr*governor", "D=ABC", "lto=A*B*C"):
        assert fraction(names, [text]).generators == ("lto=opt*aslr*governor",)


@pytest.mark.parametrize(
    ("generators", "words"),
    [
        (["D"], "D: not a generator; write it as D=ABC or as name=name"),
        (["D="], "not a generator"),
        (["D=AX"], "D=AX: X: no such factor; the factors are a, b, c, d, e"),
        (["D=AA"], "the same factor twice"),
        (["D=AD"], "d is on both sides"),
        (["D=AB", "D=AC"], "d already has a generator"),
        (["D=AB", "E=AD"], "d has a generator of its own"),
        (["D=A"], "d would be the same as a"),
        (["D=AB", "E=AB"], "d and e would be aliased: their generators have the same factors"),
    ],
)
def test_anything_but_a_generator_is_refused_in_one_line(generators: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words) as raised:
        fraction("abcde", generators)
    assert "\n" not in str(raised.value)


def test_without_generators_all_treatments_are_run() -> None:
    found = fraction("abc", [])
    assert (len(found.treatments), found.resolution, found.aliases()) == (8, None, ())
    assert "every effect is separate" in found.words()[0]


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.data())
def test_defining_words_hold_in_every_run_and_columns_are_balanced(data: st.DataObject) -> None:
    base = data.draw(st.integers(2, 4))
    columns = [each for size in range(2, base + 1) for each in combinations("ABCD"[:base], size)]
    chosen = data.draw(st.lists(st.sampled_from(columns), min_size=1, max_size=3, unique=True))
    letters = "ABCDEFGH"
    signs_ = [data.draw(st.sampled_from(("", "-"))) for _ in chosen]
    texts = [f"{letters[base + at]}={signs_[at]}{''.join(each)}" for at, each in enumerate(chosen)]
    found = fraction(letters[: base + len(chosen)], texts)
    assert len(found.treatments) == len(set(found.treatments)) == 2**base
    assert len(found.defining) == 2 ** len(chosen) - 1
    assert all(holds(found, word) for word in found.defining)
    assert all(sum(column) == 0 for column in signs(found))
    assert all(sum(a * b for a, b in zip(one, two, strict=True)) == 0 for one, two in combinations(signs(found), 2))
    longer = [effect for size in (1, 2) for effect in combinations(range(len(found.names)), size)]
    reported = {effect for effect, others in found.aliases() for effect in (effect, *(word.factors for word in others))}
    for effect in longer:  # an effect is reported exactly where its column is another one's
        same = any(
            holds(found, Word(tuple(sorted(set(effect) ^ set(other))), sign))
            for other, sign in product(longer, (1, -1))
            if other != effect
        )
        assert same == (effect in reported)


@pytest.mark.parametrize(
    ("k", "runs", "pattern"),
    [
        (5, 16, {5: 1}),
        (6, 16, {4: 3}),
        (7, 8, {3: 7, 4: 7, 7: 1}),
        (7, 32, {4: 1, 5: 2}),
        (8, 16, {4: 14, 8: 1}),
        (8, 32, {4: 3, 5: 4}),
        (9, 32, {4: 6, 5: 8, 8: 1}),
        (11, 32, {4: 25, 6: 27, 8: 10, 10: 1}),
        (15, 16, {3: 35, 4: 105, 5: 168, 6: 280, 7: 435, 8: 435, 9: 280, 10: 168, 11: 105, 12: 35, 15: 1}),
    ],
)
def test_the_best_fraction_has_the_word_lengths_of_the_tables(k: int, runs: int, pattern: dict[int, int]) -> None:
    found = best_fraction("abcdefghjklmnop"[:k], runs)
    assert len(found.treatments) == runs
    assert Counter(len(word.factors) for word in found.defining) == pattern


@pytest.mark.parametrize(
    ("k", "runs", "words"),
    [(4, 6, "a power of two"), (3, 16, "more than the 8 treatments"), (9, 8, "9 factors need at least 16 runs")],
)
def test_an_impossible_fraction_is_refused(k: int, runs: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        best_fraction("abcdefghjk"[:k], runs)


def test_too_many_choices_of_generators_are_refused_in_seconds() -> None:
    with pytest.raises(ValueError, match="too many to search; give generators"):
        best_fraction([f"x{number}" for number in range(17)], 32)


def test_too_many_runs_are_refused_before_the_search() -> None:
    with pytest.raises(ValueError, match=r"at most .* treatments are supported"):
        best_fraction([f"f{number}" for number in range(60)], 1 << 59)
