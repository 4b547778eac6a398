"""What an experiment would run, and what that can test, is said before anything runs."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

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
    made = planned(tmp_path, experiment(two("a"), two("b"), two("c"), head="iterations = 8"))
    assert (len(made["treatments"]), made["trials"], made["left_s"]) == (8, 64, None)
    assert [each["name"] for each in made["effects"] if each["testable"]] == [
        "a",
        "b",
        "c",
        f"a{X}b",
        f"a{X}c",
        f"b{X}c",
    ]
    assert (made["balanced"], made["orthogonal"], made["words"]) == (True, True, [])


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


def test_what_a_plackett_burman_design_says_of_interactions_is_what_it_says_of_each(tmp_path: Path) -> None:
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
        assert "this design can test nothing: h cannot be tested: one batch per level" in done.stderr
    assert not (tmp_path / "e.db").exists()


def test_what_cannot_be_tested_is_told_before_it_runs(tmp_path: Path) -> None:
    written(tmp_path, experiment(two("a"), two("h", "hard = true"), head="iterations = 1"))
    done = screen("run", "e.toml", folder=tmp_path)
    assert done.returncode == 0
    assert "cannot be tested: one batch per level of h" in done.stderr.splitlines()[0]


def test_the_time_it_takes_is_told_where_an_earlier_run_knows_it(tmp_path: Path) -> None:
    written(tmp_path, experiment(two("a"), two("b"), command="sleep 0.05; echo 1"))
    assert screen("run", "e.toml", folder=tmp_path).returncode == 0
    written(tmp_path, experiment(two("a"), two("b"), command="sleep 0.05; echo 1", head="iterations = 100"))
    made = json.loads(screen("plan", "e.toml", "--json", folder=tmp_path).stdout)
    assert made["left_s"] > 400 * 0.05
    assert "by the trials of an earlier run" in screen("plan", "e.toml", folder=tmp_path).stdout


def test_a_plan_for_people_has_treatments_batches_and_abridgments(tmp_path: Path) -> None:
    more = "[[abridgment]]\nname = 'no b'\nminus = ['b=1']\n[reset]\nkind = 'reboot'\ncommand = 'x'\n"
    written(tmp_path, experiment(two("a", "hard = true"), two("b"), head="iterations = 3\nbatches = 2", more=more))
    said = screen("plan", "e.toml", folder=tmp_path).stdout
    assert "e: 4 treatments x 3 iterations x 4 batches, each after a reboot: 24 trials" in said
    assert "  a=0 b=1\n" in said
    assert "abridgment no b: 2 treatments, balanced" in said


def test_init_writes_an_example_that_runs_and_writes_over_nothing(tmp_path: Path) -> None:
    assert screen("init", "e.toml", folder=tmp_path).returncode == 0
    assert screen("plan", "e.toml", folder=tmp_path).returncode == 0
    done = screen("init", "e.toml", folder=tmp_path)
    assert (done.returncode, "is there already" in done.stderr) == (2, True)


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


def test_batches_in_rounds_that_nearly_alternate_are_said_to(tmp_path: Path) -> None:
    head = "iterations = 1\nbatches = 4\nsequence = ['0', '1', '0', '1', '0', '1', '0', '1']"
    made = planned(tmp_path, experiment(two("a"), two("h", "hard = true"), head=head))
    assert made["words"][-1].endswith("nearly alternating")
