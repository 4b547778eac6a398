"""Where a comparison runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from cbench.ab import run
from cbench.ab.options import AbOptions, Arm
from quiet import UsageError


class Replaced(Exception):
    """This process has become another program."""


def test_a_profile_restarts_the_same_command_line_within_quiet_run(monkeypatch: pytest.MonkeyPatch) -> None:
    words: list[str] = []

    def execve(path: str, command: list[str], environment: dict[str, str]) -> None:
        assert environment["CBENCH_INSIDE_QUIET"] == "1"
        words.extend(command)
        raise Replaced

    monkeypatch.setattr(os, "execve", execve)
    monkeypatch.setattr(sys, "argv", ["cbench", "ab", "--profile", "bench", "--", "./old -n 3", "./new"])
    options = AbOptions(arms=(Arm("a", "true"), Arm("b", "true")), folder="/", profile="bench")
    with pytest.raises(Replaced):
        run.start(options, None, lambda *_: None, lambda _line: None)
    at = words.index("--")
    assert words[3:7] == ["quiet", "run", "--profile", "bench"]
    assert words[at + 1 :] == [
        *(sys.executable, "-P", "-m", "cbench"),
        *("ab", "--profile", "bench", "--", "./old -n 3", "./new"),
    ]


def test_an_unknown_profile_is_reported_before_root_is_needed() -> None:
    options = AbOptions(arms=(Arm("a", "true"), Arm("b", "true")), folder="/", profile="bnch")
    with pytest.raises(UsageError, match=r"bnch.*did you mean bench"):
        run.start(options, None, lambda *_: None, lambda _line: None)


def test_arms_run_in_the_folder_in_which_the_comparison_began(tmp_path: Path) -> None:
    arms = (Arm("a", "sh -c 'pwd >> here'"), Arm("b", "true"))
    options = AbOptions(arms=arms, folder=str(tmp_path), blocks=2)
    run.start(options, None, lambda *_: None, lambda _line: None)
    assert set((tmp_path / "here").read_text().split()) == {str(tmp_path)}
    assert Path.cwd() != tmp_path
