"""The plan of an experiment: its runs, the testable effects of each response, and whether there are enough
iterations.
"""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cbench.screen.config.file import parse
from cbench.screen.config.plan import Planned
from cbench.screen.data.roles import Chosen
from quiet.errors import UsageError
from tests.cbench.screen import screens
from tests.cbench.screen.running import experiment, factor, screen, written

X = "\u00d7"
"""Between the factors of an interaction."""
PB = "iterations = 9\ndesign = 'plackett-burman'\nruns = {}"


def two(name: str, head: str = "") -> str:
    return factor(name, {"0": f"environment = {{ {name} = '0' }}", "1": f"environment = {{ {name} = '1' }}"}, head)


def planned(folder: Path, text: str) -> dict[str, Any]:
    written(folder, text)
    done = screen("plan", "e.toml", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    assert sorted(each.name for each in folder.iterdir()) == ["e.toml"]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_full_factorial_tests_every_effect(tmp_path: Path) -> None:
    made = planned(tmp_path, experiment(two("a"), two("b"), two("c"), head="iterations = 14"))
    assert (len(made["treatments"]), made["trials"], made["left_s"]) == (8, 112, None)
    assert [each["name"] for each in made["effects"] if each["testable"]] == [
        "a",
        "b",
        "c",
        f"a{X}b",
        f"a{X}c",
        f"b{X}c",
    ]
    assert (made["balanced"], made["orthogonal"]) == (True, True)
    assert [each.partition(" of ")[0] for each in made["words"]] == ["y: detects a main effect"]


def test_a_fraction_shows_what_is_aliased(tmp_path: Path) -> None:
    made = planned(tmp_path, experiment(*map(two, "abcd"), head="iterations = 1\ndesign = 'fraction'"))
    assert len(made["treatments"]) == 8
    assert {each["name"]: each["aliases"] for each in made["effects"]}[f"a{X}b"] == [f"c{X}d"]
    assert any("resolution" in each for each in made["words"])
    by_hand = "iterations = 1\ndesign = 'fraction'\ngenerators = ['D=AB']"
    made = planned(tmp_path, experiment(*map(two, "abcd"), head=by_hand))
    assert {each["name"]: each["testable"] for each in made["effects"]}[f"a{X}b"] is False


def test_a_plackett_burman_design_has_a_multiple_of_four_treatments(tmp_path: Path) -> None:
    made = planned(tmp_path, experiment(*map(two, "abcdefghijk"), head="iterations = 1\ndesign = 'plackett-burman'"))
    assert len(made["treatments"]) == 12
    assert "no interaction can be tested" in made["words"]
    assert not any(each["testable"] for each in made["effects"] if X in each["name"])


def test_a_plackett_burman_designs_summary_of_interactions_agrees_with_each_one(tmp_path: Path) -> None:
    for names, runs in (("ab", 4), ("abcd", 8), ("abc", 4)):
        made = planned(tmp_path, experiment(*map(two, names), head=PB.format(runs)))
        tested = [each["testable"] for each in made["effects"] if X in each["name"]]
        said = [words for words in made["words"] if "interaction" in words and "can be tested" in words]
        if all(tested):
            assert said == []
        elif any(tested):
            assert said == [f"{sum(tested)} of {len(tested)} interactions can be tested"]
        else:
            assert said == ["no interaction can be tested"]


def test_one_batch_of_each_level_cannot_test_a_hard_factor_and_several_can(tmp_path: Path) -> None:
    factors = (two("a"), two("h", "hard = true"))
    made = planned(tmp_path, experiment(*factors))
    assert {each["name"]: each["testable"] for each in made["effects"]} == {"a": True, "h": False, f"a{X}h": False}
    assert any("cannot be tested: one batch per level of h" in words for words in made["words"])
    assert sorted(batch["h"] for batch in made["batches"]) == ["0", "1"]
    made = planned(tmp_path, experiment(*factors, head="iterations = 2\nbatches = 3"))
    assert all(each["testable"] for each in made["effects"])
    assert (len(made["batches"]), made["trials"]) == (6, 24)


def test_an_experiment_that_can_test_nothing_is_refused(tmp_path: Path) -> None:
    written(tmp_path, experiment(two("h", "hard = true")))
    for command in ("plan", "run"):
        done = screen(command, "e.toml", folder=tmp_path)
        assert done.returncode == 2
        assert "this design cannot test any effect: h cannot be tested: one batch per level" in done.stderr
    assert not (tmp_path / "e.db").exists()


def test_untestable_effects_are_reported_before_anything_runs(tmp_path: Path) -> None:
    written(tmp_path, experiment(two("a"), two("h", "hard = true"), head="iterations = 1"))
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 0
    assert "cannot be tested: one batch per level of h" in done.stderr.splitlines()[0]


@pytest.mark.slow
def test_the_expected_time_is_reported_if_an_earlier_run_exists(tmp_path: Path) -> None:
    written(tmp_path, experiment(two("a"), two("b"), command="sleep 0.05; echo 1"))
    assert screen("run", "e.toml", folder=tmp_path).returncode == 0
    written(tmp_path, experiment(two("a"), two("b"), command="sleep 0.05; echo 1", head="iterations = 100"))
    made = json.loads(screen("plan", "e.toml", "--json", folder=tmp_path).stdout)
    assert made["left_s"] > 400 * 0.05
    assert "estimated from the trials of an earlier run" in screen("plan", "e.toml", folder=tmp_path).stdout


def test_a_plan_for_people_has_treatments_batches_and_abridgments(tmp_path: Path) -> None:
    more = "[[abridgment]]\nname = 'no b'\nminus = ['b=1']\n[reset]\nkind = 'reboot'\ncommand = 'x'\n"
    written(tmp_path, experiment(two("a", "hard = true"), two("b"), head="iterations = 3\nbatches = 2", more=more))
    said = screen("plan", "e.toml", folder=tmp_path).stdout
    assert "e: 4 treatments x 3 iterations x 4 batches, each after a reboot: 24 trials" in said
    assert "  a=0 b=1\n" in said
    assert "abridgment no b: 2 treatments, balanced" in said


def test_init_writes_an_example_that_runs_and_overwrites_nothing(tmp_path: Path) -> None:
    assert screen("init", "e.toml", folder=tmp_path).returncode == 0
    assert screen("plan", "e.toml", folder=tmp_path).returncode == 0
    done = screen("init", "e.toml", folder=tmp_path)
    assert (done.returncode, "already exists" in done.stderr) == (2, True)


def test_a_mixed_sequence_of_batches_is_balanced_and_neither_alternates_nor_comes_in_blocks(tmp_path: Path) -> None:
    head = "iterations = 1\nbatches = 10\nsequence = 'mixed'\nseed = {}"
    drawn = set()
    for seed in (1, 2):
        made = planned(tmp_path, experiment(two("a"), two("h", "hard = true"), head=head.format(seed)))
        sequence = [each["h"] for each in made["batches"]]
        assert (sequence.count("0"), sequence.count("1")) == (10, 10)
        assert 6 <= sum(one != other for one, other in pairwise(sequence)) <= 14
        (said,) = made["words"]
        assert said.startswith("h: 20 batches, 10 of 0, 10 of 1; the level changes ")
        drawn.add(tuple(sequence))
    assert len(drawn) == 2


def test_batches_in_rounds_that_nearly_alternate_are_reported(tmp_path: Path) -> None:
    head = "iterations = 1\nbatches = 4\nsequence = ['0', '1', '0', '1', '0', '1', '0', '1']"
    made = planned(tmp_path, experiment(two("a"), two("h", "hard = true"), head=head))
    assert made["words"][-1].endswith("nearly alternating")


BOTH = "\n[[response]]\nname = 'z'\n"


def without(*where: str) -> str:
    """y cannot be had there."""
    part = "[[constraint]]\nkind = 'unobtainable'\nwhere = '{}'\nreason = 'broken'\nresponses = ['y']\n"
    return BOTH + "".join(part.format(each) for each in where)


def checked(text: str) -> Planned:
    made = Planned(parse(text, "e.toml", "/"))
    made.check()
    return made


def said(text: str) -> tuple[str, ...]:
    return checked(text).words()


MANY = "iterations = 20"


def test_factors_aliased_in_the_available_treatments_of_a_response_are_reported_for_that_response_only() -> None:
    made = checked(experiment(*map(two, "abc"), head=MANY, more=without("a=1 b=1", "a=0 b=0")))
    words = made.words()
    assert words[0] == "y is available for 4 of 8 treatments"
    assert "y: a, b are fully aliased: none can be separated from another" in words
    plan = made.result()
    able = {name: {each.name for each in row.effects if each.testable} for name, row in plan.responses.items()}
    assert "c" in able["y"]
    assert not {"a", "b", f"a{X}b"} & able["y"]
    assert able["z"] == {"a", "b", "c", f"a{X}b", f"a{X}c", f"b{X}c"}


def test_a_level_that_a_response_never_has_is_reported() -> None:
    words = said(experiment(*map(two, "ab"), head=MANY, more=without("a=1")))
    assert words == (
        "y is available for 2 of 4 treatments",
        "y: a=1 is in no treatment",
        "y: a cannot be tested: every treatment has a=0",
        f"y: a{X}b cannot be tested: every treatment has a=0",
    )


def test_a_response_that_can_test_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match=r"^e: no effect on y can be tested: a cannot be tested: it is fully"):
        checked(experiment(*map(two, "ab"), head=MANY, more=without("a=1 b=1", "a=0 b=0")))
    with pytest.raises(UsageError, match="the response y is not available for any treatment"):
        checked(experiment(*map(two, "ab"), head=MANY, more=without("a=0", "a=1")))


def test_samples_without_a_profiler_at_one_of_two_levels_are_reported_and_run() -> None:
    more = "read = 'wall'\n[[response]]\nname = 's'\nread = 'samples'\n"
    profilers = factor("p", {"off": "profiler = 'none'", "fp": "profiler = 'fp'"})
    assert "s: p cannot be tested: every treatment has p=fp" in said(experiment(profilers, head=MANY, more=more))


def test_missing_responses_of_a_plackett_burman_design_are_reported() -> None:
    head = f"{MANY}\ndesign = 'plackett-burman'\nruns = 8"
    words = said(experiment(*map(two, "abcde"), head=head, more=without("a=1")))
    assert "y is available for 4 of 8 treatments" in words
    assert "y: a cannot be tested: every treatment has a=0" in words


@pytest.mark.parametrize(("iterations", "enough_of_them"), [(1, False), (8, False), (13, False), (14, True)])
def test_iterations_that_are_too_few_for_ranks_are_reported(iterations: int, enough_of_them: bool) -> None:
    words = said(experiment(*map(two, "abc"), head=f"iterations = {iterations}"))
    few = "few iterations: signed ranks, which do not assume normality, need 14 iterations for 6 effects"
    assert [each.startswith(f"{few} that are tested, but y has {iterations};") for each in words if "few" in each] == [
        True
    ] * (not enough_of_them)


def test_every_batch_of_a_hard_factor_has_iterations_of_its_own_and_a_hard_factor_alone_none() -> None:
    words = said(experiment(two("a"), two("h", "hard = true"), head="iterations = 2\nbatches = 2\nalpha = 0.001"))
    assert any("need 13 iterations for 3 effects that are tested, but y has 8;" in each for each in words)
    alone = said(experiment(two("h", "hard = true"), head="iterations = 1\nbatches = 2"))
    assert not any("few iterations" in each for each in alone)


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


def test_the_analysis_reports_a_level_that_a_response_never_has(tmp_path: Path) -> None:
    rows = [
        {"a": a, "b": b, "iteration": number, "y": number + b if not a else "", "z": number}
        for number in range(12)
        for a in (0, 1)
        for b in (0, 1)
    ]
    made, _ = screens.analysed(screens.table(tmp_path / "d.csv", rows), chosen=Chosen(values=("y", "z")))
    assert "beware: y: a cannot be tested: every treatment has a=0" in made["verdict"]
