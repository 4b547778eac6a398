"""Valid comparisons, and requests that are refused in one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from cbench.ab.options import AbOptions, Arm, ab_options, environment_of
from quiet import UsageError


def make(
    *words: str,
    arms: Sequence[str] = (),
    revisions: Sequence[str] = (),
    environments: Sequence[str] = (),
    run: str = "",
    effect: str = "1%",
    base: AbOptions | None = None,
) -> AbOptions:
    return ab_options(
        words,
        arms=arms,
        revisions=revisions,
        environments=environments,
        run=run,
        effect=effect,
        base=base or AbOptions(arms=(), folder="/"),
    )


def layouts(
    command: str = "{program}",
    arms: int = 2,
    build: str = "cc -DSEED={seed} -o {program}",
    layouts: int = 10,
    preset: str = "free",
    blocks: int | None = None,
) -> dict[str, object]:
    """The arguments of make() for arms that are built in many layouts."""
    base = AbOptions(arms=(), folder="/", build=build, layouts=layouts, preset=preset, blocks=blocks)
    return {"arms": [f"a{number}={command}" for number in range(arms)], "base": base}


def test_each_word_is_an_arm_and_a_repeated_one_gets_a_number() -> None:
    assert [arm.name for arm in make("./a -n 3", "./b", "./b").arms] == ["./a -n 3", "./b", "./b #2"]


def test_arms_with_names_follow_those_without() -> None:
    options = make("./a", arms=["fast=./a --fast", "x=env A=1 ./a"])
    assert options.arms[1:] == (Arm("fast", "./a --fast"), Arm("x", "env A=1 ./a"))


@pytest.mark.parametrize("name", ["a\nb", "a\tb", "a\x1b[31m"])
def test_a_name_with_control_characters_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="an arm's name cannot contain"):
        make("./a", arms=[f"{name}=./b"])


def test_a_file_of_variables_belongs_to_an_arm_or_makes_one(tmp_path: Path) -> None:
    file = tmp_path / "fast.env"
    file.write_text('# allocator\nMALLOC_ARENA_MAX=1\n\nEMPTY=\nQUOTED="a b"\n')
    options = make(arms=["plain=./a"], environments=[f"plain={file}", f"other={file}"], run="./b")
    variables = (("MALLOC_ARENA_MAX", "1"), ("EMPTY", ""), ("QUOTED", '"a b"'))
    assert options.arms == (Arm("plain", "./a", "", variables), Arm("other", "./b", "", variables))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("A=1\nnot a variable\n", ":2: 'not a variable' is not of the form NAME=VALUE"),
        ("export A=1", ":1: 'export A=1' is not"),
    ],
)
def test_a_wrong_line_of_variables_is_named(tmp_path: Path, content: str, why: str) -> None:
    file = tmp_path / "a.env"
    file.write_text(content)
    with pytest.raises(UsageError, match=why):
        environment_of(file)


def test_an_invalid_file_of_variables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        environment_of(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"A=\xff\n")
    with pytest.raises(UsageError, match="not UTF-8 text"):
        environment_of(tmp_path / "bytes")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "two arms are needed: cbench ab -- ./old ./new"),
        ({"arms": ["./a", "b=./b"]}, "--arm './a': write NAME=CMD"),
        ({"arms": ["a=./a", "a=./b"]}, "a: two arms have this name"),
        ({"arms": ["a=./a", "a (copy)=./b"]}, "a (copy): names that end with (copy) are reserved"),
        ({"arms": ["a=./a", "b='"]}, "No closing quotation; quote it as in a shell"),
        ({"revisions": ["HEAD", "HEAD~1"]}, "give the command to measure in each revision with --run CMD"),
        ({"environments": ["a=/dev/null"], "arms": ["b=x"]}, "no arm is named 'a'; give the command of a new arm"),
        ({"run": "./x", "arms": ["a=./a", "b=./b"]}, "--run applies only to --revision and --env-file"),
        ({"effect": "x", "arms": ["a=./a", "b=./b"]}, "--effect 'x': write a percentage such as 1%"),
        ({"effect": "1", "arms": ["a=./a", "b=./b"]}, "--effect 1: a share is less than 1; for 1 percent, write 1%"),
        ({"effect": "5", "arms": ["a=./a", "b=./b"]}, "--effect 5: a share is less than 1; for 5 percent, write 5%"),
        ({"arms": ["a=./a > /dev/null", "b=./b"]}, "./a > /dev/null: `>` would be passed as an argument; add --shell"),
        ({"effect": "0", "arms": ["a=./a", "b=./b"]}, "--effect 0%: must be from 0.01% to 100%"),
        (
            {"base": AbOptions(arms=(), folder="/", build="make"), "arms": ["a=x", "b=x"]},
            "--build applies only to revisions",
        ),
        ({"arms": ["a={program}", "b={program}"]}, "--build has no {program}: use it as the path of the executable"),
        (layouts(build="make {program}"), "--build has no {seed}: without it, all builds of preset free are the same"),
        (layouts(preset="lld"), "--build has no {layout}: without it, all builds of preset lld"),
        (layouts(preset="environment"), "--preset 'environment': must be one of alignment, lld, mold, go, free"),
        (layouts(layouts=5), "--layouts 5: must be from 6, below which no difference can be shown, to 200"),
        (layouts(layouts=6, arms=3), "--layouts 6: must be from 7"),
        (layouts(layouts=201), "--layouts 201: must be from 6"),
        (layouts(blocks=9), "--layouts 10: more than --blocks 9, but each block measures only one layout"),
        (layouts(command="./x"), "--build applies only to revisions (--revision NAME=REV) and to arms with {program}"),
        (
            layouts(command="./x", build=""),
            "--layouts: arm a0 is not built; use a revision, or {program} in",
        ),
        (
            {"base": AbOptions(arms=(), folder="/", budget=-1), "arms": ["a=x", "b=x"]},
            "--budget -1: must be above 0",
        ),
        ({"base": AbOptions(arms=(), folder="/", blocks=0), "arms": ["a=x", "b=x"]}, "--blocks 0: must be from 1 to"),
        (
            {"base": AbOptions(arms=(), folder="/", timeout=0), "arms": ["a=x", "b=x"]},
            "--timeout 0: must be above 0",
        ),
    ],
)
def test_arms_that_cannot_be_compared_are_refused_in_one_line(arguments: dict[str, object], why: str) -> None:
    with pytest.raises(UsageError) as error:
        make(**arguments)  # type: ignore[arg-type]
    assert why in str(error.value)
    assert "\n" not in str(error.value)


def test_a_command_that_is_its_own_name_is_named_once() -> None:
    with pytest.raises(UsageError) as error:
        make(arms=["true=true", "./a 'b=./a 'b"])
    assert str(error.value) == '"./a \'b": No closing quotation; quote it as in a shell'


def test_shares_are_percentages_or_plain_numbers() -> None:
    assert make("a", "b", effect="0.5%").effect == pytest.approx(make("a", "b", effect="0.005").effect)


def test_without_a_budget_it_takes_three_seconds_for_each_given_arm() -> None:
    rule = make("./a", "./b").rule
    assert (rule.budget_s, rule.strict, rule.arms, rule.first_look) == (6.0, False, 3, 12)


def test_the_first_check_follows_a_block_of_each_layout() -> None:
    options = make(**layouts(layouts=20))  # type: ignore[arg-type]
    assert (options.rule.layouts, options.rule.first_look) == (20, 24)
