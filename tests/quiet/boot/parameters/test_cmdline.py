"""A command line read as the kernel reads it."""

from __future__ import annotations

import pytest

from quiet.boot.parameters import cmdline
from quiet.errors import UsageError


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("root=/dev/vda ro  quiet\n", ["root=/dev/vda", "ro", "quiet"]),
        ('dyndbg="file a.c +p; file b.c +p" ro', ['dyndbg="file a.c +p; file b.c +p"', "ro"]),
        ('"dyndbg=file a.c +p" ro', ['"dyndbg=file a.c +p"', "ro"]),
        ('open="never closed ro', ['open="never closed ro']),
        ("", []),
    ],
)
def test_blanks_separate_words_but_not_between_quotes(line: str, found: list[str]) -> None:
    assert cmdline.split(line) == found


def test_words_after_two_dashes_are_for_init() -> None:
    line = cmdline.parse("ro quiet -- single nohz_full=3")
    assert (line.words, line.init) == (("ro", "quiet"), ("--", "single", "nohz_full=3"))
    assert str(line.changed(["quiet"], ["nohz_full=2"])) == "ro nohz_full=2 -- single nohz_full=3"


def test_dashes_and_underscores_are_equal_in_names_only() -> None:
    line = cmdline.parse("nohz-full=3 rcu_nocbs=3 x=nohz-full")
    assert line.of("nohz_full") == ["nohz-full=3"]
    assert line.of("rcu-nocbs") == ["rcu_nocbs=3"]
    assert cmdline.value("x=nohz-full") == "nohz-full"
    assert cmdline.value("quiet") is None


@pytest.mark.parametrize("word", ["", "a b", 'x="1"', "x=$(id)", "x;y", "--", "=3", "x'y", "x\ny", "x=`id`", "x\\y"])
def test_a_word_that_a_boot_loader_would_misread_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match="not a valid kernel parameter"):
        cmdline.check(word, "profile mine")
