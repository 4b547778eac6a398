"""What can be tested of each response is said before anything runs, and whether there are enough iterations for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbench.screen.config.file import parse
from cbench.screen.config.plan import Planned
from cbench.screen.data.read_table import Chosen
from cbench.screen.design import testability
from quiet.errors import UsageError
from tests.cbench.screen import screens
from tests.cbench.screen.running import experiment, factor

X = "\u00d7"
BOTH = "\n[[response]]\nname = 'z'\n"


def two(name: str, head: str = "") -> str:
    return factor(name, {"0": f"environment = {{ {name} = '0' }}", "1": f"environment = {{ {name} = '1' }}"}, head)


def without(*where: str) -> str:
    """y cannot be had there."""
    part = "[[constraint]]\nkind = 'unobtainable'\nwhere = '{}'\nreason = 'broken'\nresponses = ['y']\n"
    return BOTH + "".join(part.format(each) for each in where)


def planned(text: str) -> Planned:
    made = Planned(parse(text, "e.toml", "/"))
    made.check(made.judged())
    return made


def said(text: str) -> tuple[str, ...]:
    made = planned(text)
    return made.words(made.judged())


MANY = "iterations = 20"


def test_factors_that_are_aliased_where_a_response_can_be_had_are_told_and_every_other_response_is_not() -> None:
    made = planned(experiment(*map(two, "abc"), head=MANY, more=without("a=1 b=1", "a=0 b=0")))
    words = made.words(made.judged())
    assert words[0] == "y is had of 4 of 8 treatments"
    assert "y: a, b are fully aliased: none can be told from another" in words
    plan = made.result(made.judged())
    able = {name: {each.name for each in row.effects if each.testable} for name, row in plan.responses.items()}
    assert "c" in able["y"]
    assert not {"a", "b", f"a{X}b"} & able["y"]
    assert able["z"] == {"a", "b", "c", f"a{X}b", f"a{X}c", f"b{X}c"}


def test_a_level_that_a_response_never_has_is_told() -> None:
    words = said(experiment(*map(two, "ab"), head=MANY, more=without("a=1")))
    assert words == (
        "y is had of 2 of 4 treatments",
        "y: a=1 is in no treatment",
        "y: a cannot be tested: every treatment has a=0",
        f"y: a{X}b cannot be tested: every treatment has a=0",
    )


def test_a_response_that_can_test_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^e: the response y can test nothing: a cannot be tested: it is fully"):
        planned(experiment(*map(two, "ab"), head=MANY, more=without("a=1 b=1", "a=0 b=0")))
    with pytest.raises(UsageError, match="the response y cannot be had of any treatment"):
        planned(experiment(*map(two, "ab"), head=MANY, more=without("a=0", "a=1")))


def test_samples_without_a_profiler_at_one_of_two_levels_are_told_and_run() -> None:
    more = "read = 'wall'\n[[response]]\nname = 's'\nread = 'samples'\n"
    profilers = factor("p", {"off": "profiler = 'none'", "fp": "profiler = 'fp'"})
    assert "s: p cannot be tested: every treatment has p=fp" in said(experiment(profilers, head=MANY, more=more))


def test_missing_responses_of_a_plackett_burman_design_are_told() -> None:
    head = f"{MANY}\ndesign = 'plackett-burman'\nruns = 8"
    words = said(experiment(*map(two, "abcde"), head=head, more=without("a=1")))
    assert "y is had of 4 of 8 treatments" in words
    assert "y: a cannot be tested: every treatment has a=0" in words


@pytest.mark.parametrize(("iterations", "enough_of_them"), [(1, False), (3, False), (7, False), (8, True)])
def test_iterations_that_can_never_show_anything_are_told(iterations: int, enough_of_them: bool) -> None:
    words = said(experiment(*map(two, "abc"), head=f"iterations = {iterations}"))
    few = (
        "too few iterations to tell any effect within them from chance: of 6 effects that are tested it takes 8, y has"
    )
    assert list(words) == ([] if enough_of_them else [f"{few} {iterations}"])


def test_what_is_told_of_too_few_iterations_is_what_the_analysis_says(tmp_path: Path) -> None:
    made, _ = screens.analysed(screens.table(tmp_path / "d.csv", screens.planted(7)), chosen=screens.BOTH)
    (beware,) = [line for line in made["verdict"] if "too few iterations to tell" in line]
    more = BOTH.replace("'z'", "'other'")
    words = said(experiment(*map(two, "abc"), head="iterations = 7", more=more).replace("name = 'y'", "name = 'wall'"))
    assert f"beware: {words[-1]}" == beware


def test_every_batch_of_a_hard_factor_has_iterations_of_its_own_and_a_hard_factor_alone_none() -> None:
    words = said(experiment(two("a"), two("h", "hard = true"), head="iterations = 2\nbatches = 2\nalpha = 0.001"))
    assert words[-1].endswith("of 3 effects that are tested it takes 13, y has 8")
    alone = said(experiment(two("h", "hard = true"), head="iterations = 1\nbatches = 2"))
    assert not any("too few" in each for each in alone)


@pytest.mark.parametrize(("tests", "alpha", "least"), [(6, 0.05, 8), (6, 0.0025, 13), (1, 0.05, 6), (1, 0.5, 3)])
def test_the_iterations_that_are_needed_are_those_of_the_smallest_p(tests: int, alpha: float, least: int) -> None:
    assert testability.iterations_needed(tests, alpha) == least
    assert tests * 2.0 ** (1 - least) < alpha <= tests * 2.0 ** (2 - least)


def test_the_analysis_says_why_a_response_has_no_test_of_an_effect_and_does_not_call_it_large(tmp_path: Path) -> None:
    rows = [
        {
            "a": a,
            "b": b,
            "c": c,
            "iteration": number,
            "y": 9 * a + 0.1 * c + number % 3 if a != b else "",
            "z": number % 5,
        }
        for number in range(12)
        for a in (0, 1)
        for b in (0, 1)
        for c in (0, 1)
    ]
    made, _ = screens.analysed(screens.table(tmp_path / "d.csv", rows), chosen=Chosen(values=("y", "z")))
    y = made["responses"]["y"]
    assert y["effects"]["a"]["p"] is None
    assert "beware: y: a cannot be tested: it is fully aliased with b" in made["verdict"]
    assert not any(each.startswith("beware: z: ") and "cannot be tested" in each for each in made["verdict"])
    assert set(y["material"]["effects"]) == {"c"}
    assert y["material"]["largest_effect"] < 1


def test_the_analysis_says_which_level_a_response_never_has(tmp_path: Path) -> None:
    rows = [
        {"a": a, "b": b, "iteration": number, "y": number + b if not a else "", "z": number}
        for number in range(12)
        for a in (0, 1)
        for b in (0, 1)
    ]
    made, _ = screens.analysed(screens.table(tmp_path / "d.csv", rows), chosen=Chosen(values=("y", "z")))
    assert "beware: y: a cannot be tested: every treatment has a=0" in made["verdict"]
