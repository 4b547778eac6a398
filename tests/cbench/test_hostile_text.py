"""Untrusted names and messages cannot control a terminal; numbers of unusual size or script are refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.table import Table

from cbench.console import table_console, tell
from cbench.measure.options import measure_options
from cbench.study.config import parse
from cbench.workloads.registry import parse_settings
from quiet.errors import UsageError
from tests.cbench.running import cbench, error_line

EVIL = "a\x1b]0;title\x07\x9b31m\u202eb\x7f\r"
SHOWN = r"a\x1b]0;title\x07\x9b31m\u202eb\x7f\x0d"


def test_a_table_shows_control_characters_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(EVIL, title=EVIL)
    table.add_row(EVIL)
    console = table_console(100)
    console.print(table)
    console.print(f"[bold]{EVIL}[/bold]")
    out = capsys.readouterr().out
    assert out.count(SHOWN) == 4
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out)


def test_a_message_is_one_printable_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell(f"{EVIL}\nnext")
    assert capsys.readouterr().err == f"cbench: {SHOWN}\\nnext\n"


STUDY = '[study]\nrepetitions = 2\n[[test]]\nname = "a"\ncommand = "x"\nunit = "s"\n'


@pytest.mark.parametrize("steering", ["\\u001B[2J", "\\u009B", "\\u007F", "\\u202E", "\\t", "\\n", "\\r"])
@pytest.mark.parametrize("key", ['name = "a', 'unit = "s', "[study]\n"])
def test_names_and_units_of_a_study_have_no_control_characters(key: str, steering: str) -> None:
    text = STUDY.replace(key, f"{key}{steering}" if key[0] != "[" else f'{key}name = "{steering}"\n')
    with pytest.raises(UsageError, match=r"s\.toml:\d+: .*: contains a control character"):
        parse(text, "s.toml", "/")


@pytest.mark.parametrize("timeout", [0, -1, 1e18, float("nan"), float("inf"), 604_801])
def test_a_timeout_is_at_most_a_week(timeout: float) -> None:
    with pytest.raises(UsageError, match=r"--timeout .*: must be above 0 and at most 604,800"):
        measure_options(1, "auto", "auto", timeout)


@pytest.mark.parametrize("warmup", ["9" * 5000, "1000001", "-1", "\uff11", "1\n", ""])
def test_a_warm_up_is_a_plain_number(warmup: str) -> None:
    with pytest.raises(UsageError, match="--warmup"):
        measure_options(1, warmup, "auto", 60)


@pytest.mark.parametrize("value", ["1\n", " 1", "\uff11", "9" * 5000, "1__" * 30, "_1", "", "+"])
def test_a_parameter_is_a_plain_number(value: str) -> None:
    with pytest.raises(UsageError, match="is not a whole number"):
        parse_settings([f"n={value}"])


@pytest.mark.parametrize("option", ["--trials \uff11", "--stack=\uff11", "--timeout \u0661e3", "--seed -\uff11"])
def test_digits_of_other_scripts_are_not_numbers(option: str, tmp_path: Path) -> None:
    assert "contains a digit other than 0 to 9" in error_line(cbench("run", "hash", *option.split()))


@pytest.mark.slow
@pytest.mark.parametrize("option", ["--timeout 1e18", "--seed 9" + "9" * 5000, "--trials 1e18", "--stack 9" + "9" * 30])
def test_a_number_that_is_too_large_is_reported_in_one_line(option: str) -> None:
    assert len(error_line(cbench("run", "hash", *option.split()))) < 500
