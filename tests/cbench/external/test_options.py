"""Valid options of `cbench run -- CMD`, and requests that are refused in one line."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cbench.external.options import ExternalOptions, external_options
from quiet import UsageError

make: Callable[..., ExternalOptions] = partial(
    external_options,
    shell=False,
    prepare=[],
    setup="",
    trials=None,
    warmup="auto",
    quick=False,
    counter="auto",
    cpus=[],
    ignore_failure=False,
    timeout=None,
    seed=1,
    output=None,
    command_line=[],
    environment=os.environ,
)


def test_words_after_the_dashes_are_one_command_and_stay_unchanged() -> None:
    (command,) = make(["true", "a b", "*"], []).commands
    assert command.argv == ("true", "a b", "*")
    assert command.text == "true 'a b' '*'"
    assert command.path.endswith("/true")


def test_a_command_in_one_word_is_split_as_by_a_shell_but_nothing_is_expanded() -> None:
    (command,) = make([], ["true 'a b' $HOME *"]).commands
    assert command.argv == ("true", "a b", "$HOME", "*")


def test_a_shell_is_used_only_on_request() -> None:
    one, other = make(["echo", "a b"], ["true | cat"], shell=True).commands
    assert one.argv == ("/bin/sh", "-c", "echo 'a b'")
    assert other.argv == ("/bin/sh", "-c", "true | cat")


@pytest.mark.parametrize("word", ["|", "||", ">", ">>", "<", "&&", ";", "&", "2>", "2>&1", ">out.txt"])
def test_an_operator_in_a_quoted_command_is_refused_without_a_shell(word: str) -> None:
    with pytest.raises(UsageError) as error:
        make([], [f"true {word} cat"])
    assert str(error.value) == f"true {word} cat: `{word}` would be passed as an argument; add --shell, or quote it"
    assert make([], [f"true {word} cat"], shell=True).commands[0].argv[:2] == ("/bin/sh", "-c")


@pytest.mark.parametrize(
    "text", ["true '|' x", 'true "a | b" ">"', "true \\| x", "true a|b --x=1;2", "true 'a b'\"|\""]
)
def test_an_operator_that_is_quoted_or_inside_a_word_is_an_argument(text: str) -> None:
    assert make([], [text]).commands[0].path.endswith("/true")


def test_an_operator_that_the_shell_of_the_user_passed_on_is_an_argument() -> None:
    assert make(["true", "|", "file"], []).commands[0].argv == ("true", "|", "file")


def test_one_word_after_the_dashes_is_the_whole_command_of_a_shell() -> None:
    (command,) = make(["true | cat"], [], shell=True).commands
    assert (command.text, command.argv) == ("true | cat", ("/bin/sh", "-c", "true | cat"))


def test_a_program_in_the_current_directory_is_suggested_by_its_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old").write_text("#!/bin/sh\n")
    (tmp_path / "old").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=r"^old: no such program in PATH; did you mean \./old\?$"):
        make(["old"], [])


def test_the_same_command_twice_is_an_a_a_comparison_with_separate_names() -> None:
    assert [each.text for each in make(["true"], ["true", "true"]).commands] == ["true", "true #2", "true #3"]


def test_one_prepare_command_serves_all_and_several_one_each() -> None:
    assert [each.prepare for each in make(["true"], ["false"], prepare=["sync"]).commands] == ["sync", "sync"]
    assert [each.prepare for each in make(["true"], ["false"], prepare=["a", "b"]).commands] == ["a", "b"]
    with pytest.raises(UsageError, match="once for each of the 3 commands"):
        make(["true"], ["false", "ls"], prepare=["a", "b"])


@pytest.mark.parametrize(
    ("words", "texts", "options", "why"),
    [
        (["no-such-program"], [], {}, "no such program; for shell built-ins and operators add --shell"),
        (["./no/such"], [], {}, r"\./no/such: no such program$"),
        (["./no/such | wc -l"], [], {}, r"wc -l: no such program; for shell built-ins and operators add --shell"),
        (["/etc/passwd"], [], {}, "not executable"),
        ([], ["true 'a"], {}, "No closing quotation; quote it as in a shell"),
        ([], [" "], {}, "empty"),
        (["true"], [], {"trials": 0}, "--trials 0: must be from 1"),
        (["true"], [], {"warmup": "x"}, "'auto' or a number"),
        (["true"], [], {"timeout": 0.0}, "above 0"),
        (["true"], [], {"timeout": float("nan")}, "above 0"),
        (["true"], [], {"counter": "tsc"}, "a command supports auto, wall, cycles"),
    ],
)
def test_commands_that_cannot_be_measured_are_refused(
    words: list[str], texts: list[str], options: dict[str, Any], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        make(words, texts, **options)
