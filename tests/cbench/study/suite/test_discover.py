"""Tests are listed by the suite itself: from the lines that it prints, or from the results of a first pass."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cbench.study.config import parse
from cbench.study.suite.discover import discover
from quiet.errors import UsageError
from tests.cbench.study.suite.harness import NAMES, study, written


def listed(folder: Path, **keys: str) -> tuple[str, ...]:
    suite = parse(study(**keys), "s.toml", str(folder)).suite
    assert suite is not None
    return discover(suite, str(folder), os.environ, "s.toml")


def test_names_are_single_lines_of_any_printable_characters(tmp_path: Path) -> None:
    written(tmp_path)
    assert listed(tmp_path) == NAMES


def test_an_expression_finds_the_names_among_other_lines(tmp_path: Path) -> None:
    written(tmp_path, ("a: benchmark", "b c: benchmark", "2 tests"))
    assert listed(tmp_path, names="'(.+): benchmark'") == ("a", "b c")


def test_lines_without_the_name_of_an_optional_group_name_no_test(tmp_path: Path) -> None:
    written(tmp_path, ("a: benchmark", "2 tests"))
    assert listed(tmp_path, names="'(.+): benchmark|.+'") == ("a",)


def test_names_come_from_results_where_the_command_writes_them(tmp_path: Path) -> None:
    written(tmp_path)
    assert listed(tmp_path, discover='["{program}", "run", "{results}", "x y", "z"]') == ("x y", "z")


WRONG = [
    (("a",), 3, {}, "exited with 3: a"),
    (("a", "b", "a"), 0, {}, "'a' is listed 2 times, so its results are ambiguous"),
    (("a\x1b[2J",), 0, {}, "is empty or has control characters"),
    (("a",), 0, {"names": "'(b)'"}, "lists no tests: a"),
    ((), 0, {"discover": '["./nothing-there"]'}, "./nothing-there: No such file or directory"),
    (
        (),
        0,
        {"discover": '["sh", "-c", "echo error: no x; echo usage; exit 4"]'},
        "exited with 4: error: no x",
    ),
    ((), 0, {"program": '"./b --x"', "discover": '["{program}"]'}, "directory; a program with options must be a list"),
    ((), 0, {"directory": '"none"'}, "python3: No such file or directory"),
    ((), 0, {"discover": '["sleep", "60"]', "timeout": "0.2"}, "timed out after 0.2 s; raise suite.timeout"),
    (
        ("a",),
        0,
        {"discover": '["{program}", "run", "{results}", "broken"]'},
        "exited with 1 and wrote no results: it br",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("names", "status", "keys", "why"), WRONG, ids=[why for *_, why in WRONG])
def test_an_error_is_one_line_that_names_the_key(
    names: tuple[str, ...], status: int, keys: dict[str, str], why: str, tmp_path: Path
) -> None:
    written(tmp_path, names, status)
    with pytest.raises(UsageError) as raised:
        listed(tmp_path, **keys)
    assert str(raised.value).startswith("s.toml: suite.discover: ")
    assert why in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.slow
def test_the_number_of_tests_is_a_good_exit_status_of_catch2_version_2_alone(tmp_path: Path) -> None:
    written(tmp_path, ("a", "b"), listed=2)
    assert listed(tmp_path, preset='"catch2-v2"') == ("a", "b")
    with pytest.raises(UsageError, match="exited with 2"):
        listed(tmp_path, preset='"catch2"')
