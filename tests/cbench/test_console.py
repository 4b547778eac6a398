"""Texts for a shell."""

from __future__ import annotations

import shlex

import pytest

from cbench.console import shell_path


@pytest.mark.parametrize("path", ["a.db", "my study.db", "it's.db", "$(id).db", "-x.db", "a;b.db"])
def test_a_path_in_advice_is_one_word_of_a_shell_and_no_option(path: str) -> None:
    (word,) = shlex.split(shell_path(path))
    assert word in (path, f"./{path}")
    assert not word.startswith("-")
