"""Levels of an experiment's file: each sets something different, and none remains set when another one is due."""

from __future__ import annotations

import pytest

from cbench.screen.config import treatments
from cbench.screen.config.file import parse
from cbench.screen.config.model import Screen
from quiet.errors import UsageError
from tests.cbench.screen.running import experiment, factor

SAMPLES = "[[response]]\nname = 'n'\nread = 'samples:'\n"


def read(text: str) -> Screen:
    return parse(text, "e.toml", "/tmp")


def said(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_command_that_nothing_undoes_is_refused_where_another_level_has_none() -> None:
    text = experiment(factor("a", {"off": "found = true", "on": "command = 'touch marker'"}))
    assert said(text).startswith(
        "e.toml:11: factor[1].level[2].command: its setting persists at the level 'off', which has no command: write "
    )


@pytest.mark.parametrize(
    ("levels", "restores"),
    [
        ({"off": "command = 'rm -f m'", "on": "command = 'touch m'"}, [None, None]),
        ({"off": "found = true", "on": "command = 'touch m'\nrestore = 'rm m'"}, [None, "rm m"]),
        ({"off": "found = true", "on": "command = 'touch m'\nrestore = ''"}, [None, ""]),
    ],
)
def test_a_command_is_undone_declared_permanent_or_followed_by_that_of_every_other_level(
    levels: dict[str, str], restores: list[str | None]
) -> None:
    assert [level.restore for level in read(experiment(factor("a", levels))).factors[0].levels] == restores


def test_restore_needs_a_command_even_if_it_is_empty() -> None:
    text = experiment(factor("a", {"0": "found = true", "1": "aslr = true\nrestore = ''"}))
    assert "level[2].restore: the level '1' has no command to undo" in said(text)


@pytest.mark.parametrize(
    "way",
    [
        "found = true",
        "environment = { A = '1' }",
        "cpus = '0-1'",
        "aslr = true",
        "flags = '-O2'",
        "build = 'x'",
        "command = 'x'\nrestore = 'y'",
        "knob = 'timer_migration'",
        "governor = 'powersave'",
        "profile = 'bench'",
        "profiler = 'fp'",
    ],
)
def test_two_levels_of_a_factor_that_set_the_same_are_refused(way: str) -> None:
    text = experiment(factor("a", {"0": way, "1": "environment = { B = '1' }", "2": way}))
    assert "level[3]: the level '2' has the same settings as '0': change or remove one of them" in said(text)


def test_a_check_alone_does_not_distinguish_two_levels() -> None:
    ways = {"0": "command = 'x'\nrestore = 'y'", "1": "command = 'x'\nrestore = 'y'\ncheck = 'z'"}
    assert "the level '1' has the same settings as '0'" in said(experiment(factor("a", ways)))


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("environment = {}", "level[1].environment: contains no variable"),
        ("governor = ''", "level[1].governor: is empty"),
        ("profile = ' '", "level[1].profile: is empty"),
    ],
)
def test_a_level_that_names_a_way_and_nothing_to_set_is_refused(way: str, words: str) -> None:
    assert words in said(experiment(factor("a", {"0": way, "1": "aslr = true"})))


def test_a_level_as_found_has_no_profiler_where_another_level_has_one() -> None:
    screen = read(experiment(factor("p", {"0": "found = true", "1": "profiler = 'fp'"}), more=SAMPLES))
    found = treatments.treatments(screen)
    assert [dict(each.unobtainable) for each in found] == [{"n": treatments.UNSAMPLED}, {}]
    asked = [treatments.sampled(screen, each, screen.workloads[0]) for each in found]
    assert [each and each.call_graph for each in asked] == [None, "fp"]
    same = experiment(factor("p", {"0": "found = true", "1": "profiler = 'fp'", "2": "profiler = 'none'"}))
    assert "the level '2' has the same settings as '0'" in said(same)


def test_a_level_as_found_is_sampled_if_only_the_response_requests_it() -> None:
    screen = read(experiment(factor("a", {"0": "found = true", "1": "aslr = true"}), more=SAMPLES))
    asked = [treatments.sampled(screen, each, screen.workloads[0]) for each in treatments.treatments(screen)]
    assert [each and each.call_graph for each in asked] == ["none", "none"]


def test_a_variable_of_a_level_is_one_that_a_process_can_have() -> None:
    for value, words in (
        ('"a\\u0000b"', "level[2].environment.A: contains a null character"),
        (f"'{'x' * 3_000_000}'", "3,000,003 bytes with its name: the kernel allows at most"),
    ):
        assert words in said(experiment(factor("a", {"0": "found = true", "1": f"environment = {{ A = {value} }}"})))


def test_the_hint_for_an_unknown_key_names_every_way_to_set_a_level_and_every_key_of_the_experiment() -> None:
    hint = said(experiment(factor("a", {"0": "found = true\nfoo = 1", "1": "aslr = true"}))).partition("valid here: ")
    ways = ["found", "environment", "cpus", "aslr", "profiler", "flags", "build", "knob", "profile", "governor"]
    assert sorted(hint[2].split(", ")) == sorted([*ways, "name", "command", "restore", "check", "kernel"])
    a = factor("a", {"0": "found = true", "1": "aslr = true"})
    hint = said(experiment(a, head="iterations = 1\nfoo = 1")).partition("valid here: ")
    assert "runs" in hint[2].split(", ")
