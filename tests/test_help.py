"""Help texts of both commands: complete sentences in groups, and a first screen."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from cbench import cli
from quiet.cli import app as quiet_app

COLUMNS = 80 - 2  # the help's own margin


def groups(command: Any, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if hasattr(command, "commands"):
        yield path, command.commands
        for name, each in command.commands.items():
            yield from groups(each, f"{path} {name}")


APPS = (("quiet", quiet_app.app), ("cbench", cli.app))
GROUPS = [each for name, app in APPS for each in groups(typer.main.get_command(app), name)]


@pytest.mark.parametrize(("path", "commands"), GROUPS, ids=[path for path, _ in GROUPS])
def test_each_command_has_a_short_help_that_fits_on_its_line(path: str, commands: dict[str, Any]) -> None:
    shown = {name: each for name, each in commands.items() if not each.hidden}
    room = COLUMNS - 4 - max(len(name) for name in shown)
    for name, each in shown.items():
        whole = each.get_short_help_str(limit=1000)
        assert whole, f"{path} {name}"
        assert len(whole) <= room, f"{path} {name}: {whole}"
        assert "..." not in whole


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("program", ["quiet", "cbench"])
def test_a_command_alone_shows_three_commands_to_begin_with_and_the_way_to_the_rest(program: str) -> None:
    done = run(program)
    assert (done.returncode, done.stderr) == (2, "")
    assert sum(line.startswith(f"  {program} ") for line in done.stdout.splitlines()) == 3
    assert f"`{program} --help`" in done.stdout


@pytest.mark.parametrize("program", ["quiet", "cbench"])
def test_both_print_their_version(program: str) -> None:
    done = run(program, "--version")
    assert done.returncode == 0
    assert done.stdout.startswith(f"{program} ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("quiet", "plna"), "Did you mean 'plan'"),
        (("cbench", "comapre"), "Did you mean 'compare'"),
        (("quiet", "plan", "--profile", "bnch"), "did you mean bench?"),
        (("quiet", "explain", "cpustt"), "did you mean cpuset?"),
        (("cbench", "explain", "memroy"), "did you mean memory?"),
        (("cbench", "run", "memroy"), "did you mean memory?"),
    ],
)
def test_a_misspelled_name_is_answered_with_similar_ones(words: tuple[str, ...], said: str) -> None:
    done = run(*words)
    assert done.returncode == 2
    assert said in done.stderr


@pytest.mark.slow
def test_list_has_a_line_for_each_workload_and_explain_has_its_parameters() -> None:
    listed = run("cbench", "list").stdout.splitlines()
    assert len([line for line in listed if line.startswith("  memory ")]) == 1
    assert max(map(len, listed)) <= 80
    explained = run("cbench", "explain", "memory").stdout
    assert "buffer in bytes (default 524,288, with --quick 262,144)" in explained


def test_a_file_of_another_program_is_named_when_given_as_a_profile() -> None:
    done = run("quiet", "plan", "--profile", "pyproject.toml")
    assert done.returncode == 2
    assert "pyproject.toml: this is a Python project file, not a profile" in done.stderr
