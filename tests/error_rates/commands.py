"""Runs a command of cbench in this process, as the command line would, and returns its JSON and its exit code."""

from __future__ import annotations

import json
from typing import Any

from typer.testing import CliRunner

from cbench.cli import app


def said(*arguments: str) -> tuple[Any, int]:
    """What it prints with --json. AssertionError where it prints none."""
    done = CliRunner().invoke(app, [*arguments, "--json"])
    assert done.stdout.startswith("{"), (arguments, done.output, done.exception)
    return json.loads(done.stdout), done.exit_code
