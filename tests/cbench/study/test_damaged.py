"""A study's store that another program or a fault has changed: one line that names it, from every command."""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from cbench.export.export import ExportOptions, export
from cbench.order.analyze import OrderOptions, analyzed
from cbench.study import lifecycle
from quiet.errors import QuietError
from tests.cbench.running import cbench
from tests.cbench.study.storing import stored

DAMAGE = (
    "DELETE FROM study_run",
    "DELETE FROM study_run WHERE run = 0",
    "UPDATE study_run SET tests = '[7]'",
    "UPDATE study_run SET tests = '1'",
    "UPDATE study_run SET tests = '[]'",
    "UPDATE study SET tests = '[]'",
    "UPDATE study SET tests = '[1]'",
    "UPDATE study SET host = '[]'",
    "UPDATE study SET host = '" + "[" * 100_000 + "'",
    "UPDATE study SET source = CAST(x'ff' AS TEXT)",
)
NAMED = "damaged(:|, or cbench has a bug:) "
COMMANDS: dict[str, Callable[[str], object]] = {
    "analyze": lambda data: analyzed(OrderOptions(data)),
    "status": lifecycle.status,
    "resume": lambda data: lifecycle.ResumeStudy(data).run(lambda _: None),
    "export": lambda data: export(ExportOptions(data, "csv", f"{data}.csv")),
}


def damaged(folder: Path, *statements: str) -> str:
    path = stored(folder / "s.db", 2, "interleaved", 2, lambda *_: 1.0)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in ("PRAGMA foreign_keys=OFF", *statements):
            connection.execute(statement)
    return str(path)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("statement", DAMAGE)
def test_a_damaged_study_is_reported_in_one_line_that_names_its_file(
    statement: str, command: str, tmp_path: Path
) -> None:
    data = damaged(tmp_path, statement)
    with pytest.raises(QuietError, match=rf"^[^\n]*s[.]db: {NAMED}") as caught:
        COMMANDS[command](data)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("command", ["analyze", "export"])
def test_a_trial_of_no_run_is_damage(command: str, tmp_path: Path) -> None:
    with pytest.raises(QuietError, match=rf"s[.]db: {NAMED}"):
        COMMANDS[command](damaged(tmp_path, "UPDATE study_trial SET run = -1 WHERE run = 0"))


def test_a_study_whose_file_has_other_tests_is_not_resumed(tmp_path: Path) -> None:
    data = damaged(tmp_path, 'UPDATE study SET tests = \'["a", "c"]\'')
    with pytest.raises(QuietError, match=r"s[.]db: damaged: the tests in its study file differ"):
        lifecycle.ResumeStudy(data)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", ["export --format csv", "order analyze", "order status", "order run", "compare /proc/kmsg"]
)
def test_a_file_of_the_kernel_is_not_waited_for(command: str) -> None:
    done = cbench(*command.replace(" x", " /proc/kmsg").split(), "/proc/kmsg")  # blocks a reader, and has no size
    assert done.returncode == 2
    assert re.match("cbench: error: /proc/kmsg: (empty|not an ordinary file)", done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["order analyze", "order status", "order run", "screen analyze", "screen plan"])
def test_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path: Path, command: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (str(tmp_path / "pipe"), "/dev/zero"):
        done = cbench(*command.split(), path)
        assert (done.returncode, done.stderr) == (2, f"cbench: error: {path}: not an ordinary file\n")


@pytest.mark.parametrize(
    "words",
    [("order", "init", "no/s.toml"), ("screen", "init", "no/s.toml"), ("ab", "-o", "no/s.db", "--", "true", "false")],
)
def test_a_file_in_a_directory_that_does_not_exist_is_refused_with_its_name(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = cbench(*words, cwd=tmp_path)
    file = next(word for word in words if word.startswith("no/"))
    assert done.returncode == 2
    assert done.stderr == f"cbench: error: {file}: there is no directory no; create it, or choose another path\n"
