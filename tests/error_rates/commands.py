"""Run a command of cbench in this process, and return its JSON and its exit code."""

from __future__ import annotations

import json
from contextlib import redirect_stderr, redirect_stdout
from functools import cache
from io import StringIO
from typing import Any

from typer.main import get_command

from cbench.cli import app


@cache
def _command() -> Any:
    """The command line, built once, because building it takes ten times as long as most simulated studies."""
    return get_command(app)


def said(*arguments: str) -> tuple[Any, int]:
    """The command's output with --json and its exit code. Raises AssertionError if there is no output."""
    with redirect_stdout(StringIO()) as printed, redirect_stderr(StringIO()):
        code = 0
        try:
            _command().main([*arguments, "--json"], prog_name="cbench")
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 0
    assert printed.getvalue().startswith("{"), (arguments, printed.getvalue())
    return json.loads(printed.getvalue()), code
