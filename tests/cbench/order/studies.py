"""Synthetic studies for the tests, and running `cbench order analyze` on them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from cbench.cli import app
from quiet.errors import QuietError

HEAD = "test,order,run,position,value"


def write(path: Path, rows: Iterable[object], head: str = HEAD) -> Path:
    """A CSV file of these lines; each is a text, or a sequence of its columns."""
    lines = [row if isinstance(row, str) else ",".join(str(each) for each in row) for row in rows]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


def analyze(path: Path, *options: str) -> tuple[dict[str, Any], int]:
    """The output of `cbench order analyze --json`, and its exit code: 0, 1, or 2 where nothing was compared."""
    done = CliRunner().invoke(app, ["order", "analyze", str(path), "--json", *options])
    code = done.exit_code
    if isinstance(done.exception, QuietError):
        assert str(done.exception) == f"{path}: nothing to compare: no test has results in both orders; measure both"
        code = done.exception.exit_code
    assert code in (0, 1, 2), done.exception or done.output
    return json.loads(done.stdout), code


def refused(path: Path, message: str, *options: str) -> None:
    """`cbench order analyze` says this and nothing more, in one line, and the exit code is that of wrong input."""
    done = CliRunner().invoke(app, ["order", "analyze", str(path), *options])
    assert isinstance(done.exception, QuietError), done.output
    assert message in str(done.exception)
    assert "\n" not in str(done.exception)
    assert done.exception.exit_code == 2
