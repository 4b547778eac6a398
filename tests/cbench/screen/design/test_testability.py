"""What a design can test: the technical note's treatments and abridgments, batches, fractions, and how it is
described.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.screen.design.factorial import Factor, Treatment, full_factorial
from cbench.screen.design.fractional import best_fraction, fraction
from cbench.screen.design.model_matrix import columns, effects, null_space, present, rank
from cbench.screen.design.plackett import plackett_burman
from cbench.screen.design.testability import ALIASED, EMPTY, NO_PLOTS, OK, ONE_LEVEL, assess
from tests.cbench.screen.design.designs import (
    COMPLETE,
    FACTORS,
    FP,
    MATCHED_ONLY,
    OS,
    PRF,
    WITHOUT_DWARF,
    WITHOUT_QUESTIONABLE,
    factors,
)

TIMES = "\N{MULTIPLICATION SIGN}"


@pytest.mark.parametrize(
    ("treatments", "counts", "balanced", "by_factor"),
    [
        (COMPLETE, ((6, 6), (6, 6), (4, 4, 4)), True, (True, True, True)),
        (WITHOUT_QUESTIONABLE, ((5, 5), (4, 6), (4, 4, 2)), False, (True, False, False)),
        (WITHOUT_DWARF, ((4, 4), (4, 4), (4, 4, 0)), True, (True, True, True)),
        (MATCHED_ONLY, ((2, 2), (2, 2), (0, 2, 2)), True, (True, True, True)),
    ],
)
def test_the_abridgments_have_the_printed_counts_and_balance(
    treatments: tuple[Treatment, ...], counts: tuple, balanced: bool, by_factor: tuple[bool, ...]
) -> None:
    found = assess(FACTORS, treatments)
    assert found.treatments == sum(counts[0])
    assert (found.counts, found.balanced, found.balanced_factors) == (counts, balanced, by_factor)


def test_the_complete_design_can_test_everything_with_several_boots() -> None:
    found = assess(FACTORS, COMPLETE, plots=2)
    assert all(each.ok and each.df == each.full for each in found.effects)
    assert (found.orthogonal, found.words) == (True, ())


def test_one_batch_per_level_cannot_test_the_hard_factor() -> None:
    found = assess(FACTORS, COMPLETE)
    assert [each.why for each in found.effects] == [NO_PLOTS, OK, OK, NO_PLOTS, NO_PLOTS, OK]
    assert found.words == (
        f"os, os{TIMES}fp, os{TIMES}prf cannot be tested: one batch per level of os; "
        "take several batches (boots) per level, or run the boot check: an experiment of one hard factor alone, with "
        'batches = 10 and sequence = "mixed"',
    )
    assert found.effect(OS).words.startswith("os cannot be tested: one batch per level of os;")


def test_a_second_batch_of_one_level_is_enough_to_test() -> None:
    assert assess(FACTORS, COMPLETE, plots={(0,): 1, (1,): 2}).effect(OS).ok
    assert assess(FACTORS, COMPLETE, plots={(0,): 1, (1,): 1}).effect(OS).why == NO_PLOTS


def test_the_first_abridgment_is_reported_as_unbalanced_and_not_orthogonal() -> None:
    found = assess(FACTORS, WITHOUT_QUESTIONABLE, plots=2)
    assert (found.orthogonal, dict(found.empty)) == (False, {(FP, PRF): ((0, 2),)})
    assert found.words == (
        "fp is not balanced: the numbers of treatments are 4 with 0, 6 with 1",
        "prf is not balanced: the numbers of treatments are 4 with 0, 4 with 1, 2 with 2",
        "fp and prf are not orthogonal, so the plain effect of one includes some of the other's: "
        "no treatment has fp=0 prf=2",
        f"fp{TIMES}prf can be tested in part only: 1 of 2 degrees of freedom",
    )


def test_the_second_abridgment_lacks_a_level_and_nothing_else() -> None:
    found = assess(FACTORS, WITHOUT_DWARF, plots=2)
    assert (found.orthogonal, found.words) == (True, ("prf=2 is in no treatment",))
    assert all(each.ok and each.df == 1 for each in found.effects)


def test_the_third_abridgment_aliases_both_factors_fully() -> None:
    found = assess(FACTORS, MATCHED_ONLY, plots=2)
    assert [(each.why, each.aliases) for each in found.effects] == [
        (OK, ()),
        (ALIASED, ("prf",)),
        (ALIASED, ("fp",)),
        (ALIASED, (f"os{TIMES}prf",)),
        (ALIASED, (f"os{TIMES}fp",)),
        (EMPTY, ()),
    ]
    assert "fp, prf are fully aliased: none can be separated from another" in found.words
    assert found.effect(FP).words == "fp cannot be tested: it is fully aliased with prf"


def test_many_main_effects_that_are_aliased_together_are_not_called_interactions() -> None:
    names = "abcdefgh"
    found = assess(factors(names), [(0,) * len(names), (1,) * len(names)])
    (line,) = (each for each in found.words if "are fully aliased" in each)
    assert line.startswith("a, b, c, d, e, f and ")
    assert not any("interactions" in each for each in found.words)


def test_a_factor_with_one_level_left_cannot_be_tested() -> None:
    found = assess(FACTORS, [each for each in COMPLETE if each[OS] == 1], plots=3)
    assert [each.why for each in found.effects] == [ONE_LEVEL, OK, OK, ONE_LEVEL, ONE_LEVEL, OK]
    assert found.effect(OS).words == "os cannot be tested: every treatment has os=1"


def test_a_fraction_of_resolution_four_aliases_its_interactions_in_pairs() -> None:
    design = fraction("abcd", ["D=ABC"])
    found = assess(factors("abcd"), design.treatments)
    assert [each.why for each in found.effects] == [OK] * 4 + [ALIASED] * 6
    aliases = {each.name: each.aliases for each in found.effects if each.why == ALIASED}
    assert aliases[f"a{TIMES}b"] == (f"c{TIMES}d",)
    assert f"a{TIMES}b, c{TIMES}d are fully aliased: none can be separated from another" in found.words


def test_a_fraction_of_resolution_three_names_the_aliases_of_main_effects() -> None:
    design = fraction("abcdefg", ["D=AB", "E=AC", "F=BC", "G=ABC"])
    found = assess(factors("abcdefg"), design.treatments)
    assert found.effect(0).ok
    assert found.effect(0).aliases == tuple(TIMES.join(each) for each in ("bd", "ce", "fg"))
    assert "21 of the interactions cannot be tested: each is aliased with other effects" in found.words


def test_the_aliases_of_a_plackett_burman_design_are_its_own() -> None:
    design = plackett_burman("abcdefghijk")
    found = assess(factors("abcdefghijk"), design.treatments)
    for main in range(11):
        ours = {(one, two) for each, one, two, _ in design.aliases() if each == main}
        assert found.effect(main).aliases == tuple(
            f"{'abcdefghijk'[a]}{TIMES}{'abcdefghijk'[b]}" for a, b in sorted(ours)
        )


LEVELS = st.lists(st.integers(1, 3), min_size=1, max_size=4)


@st.composite
def chosen(draw: st.DrawFn) -> tuple[list[Factor], list[Treatment]]:
    sizes = draw(LEVELS)
    ours = [Factor(f"f{at}", tuple(str(each) for each in range(size))) for at, size in enumerate(sizes)]
    every = full_factorial(ours)
    keep = draw(st.lists(st.booleans(), min_size=len(every), max_size=len(every)))
    some = [treatment for treatment, kept in zip(every, keep, strict=True) if kept]
    return ours, some or [every[0]]


@settings(max_examples=100, deadline=None)
@given(chosen())
def test_ranks_are_those_of_floating_point_and_untestable_effects_add_none(
    case: tuple[list[Factor], list[Treatment]],
) -> None:
    ours, treatments = case
    found = assess(ours, treatments)
    wanted = effects(present(treatments), True)
    rows, places = columns(treatments, wanted)
    matrix = np.array(rows, dtype=float)
    whole = np.linalg.matrix_rank(matrix)
    assert whole == rank(rows) == matrix.shape[1] - len(null_space(rows))
    for each in found.effects:
        if len(each.factors) == 2 and each.why != ONE_LEVEL:
            start, end = places[each.factors]
            without = np.delete(matrix, slice(start, end), axis=1)
            assert each.df == whole - np.linalg.matrix_rank(without)
            assert each.ok == (each.df > 0)


@settings(max_examples=100, deadline=None)
@given(chosen())
def test_two_fully_aliased_factors_name_each_other(case: tuple[list[Factor], list[Treatment]]) -> None:
    ours, treatments = case
    found = assess(ours, treatments)
    for one, two in combinations(range(len(ours)), 2):
        pairs = {(each[one], each[two]) for each in treatments}
        alike = len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs) > 1
        if alike:
            assert found.effect(one).why == found.effect(two).why == ALIASED
            assert ours[two].name in found.effect(one).aliases


@pytest.mark.parametrize(("factors_", "runs"), [(4, 8), (5, 8), (6, 8), (7, 8), (5, 16), (6, 16), (7, 16), (8, 16)])
def test_every_alias_of_an_effect_is_named(factors_: int, runs: int) -> None:
    """By products of signs: two effects are aliased where their columns are one, or its negative."""
    design = best_fraction("ABCDEFGH"[:factors_], runs)
    found = assess([Factor(name, ("0", "1")) for name in design.names], design.treatments)
    signs = 2 * np.array(design.treatments) - 1
    columns_of = {each.name: np.prod(signs[:, list(each.factors)], axis=1) for each in found.effects}
    for each in (each for each in found.effects if len(each.factors) == 2):
        mine = columns_of[each.name]
        partners = {other for other, column in columns_of.items() if abs(int(mine @ column)) == runs}
        assert {*each.aliases} == partners - {each.name}
