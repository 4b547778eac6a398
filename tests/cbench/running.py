"""Runs cbench: the real command in a process of its own, or what it does in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from cbench.run import run

CBENCH = [sys.executable, "-P", "-m", "cbench"]


def cbench(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        [*CBENCH, *arguments], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that says what went wrong; there is no traceback."""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("cbench: error: ")]
    assert len(lines) == 1, done.stderr
    assert done.stdout == ""
    return lines[0].removeprefix("cbench: error: ")


def request(*names: str, **changes: object) -> run.RunRequest:
    """`cbench run NAMES --quick --trials 5 --warmup 0` with changes."""
    given: dict[str, Any] = {
        "workloads": list(names or ("hash",)),
        "trials": 5,
        "cpus": [],
        "warmup": "0",
        "counter": "auto",
        "params": [],
        "quick": True,
        "timeout": 10.0,
    }
    return run.RunRequest(**{**given, **changes})


def measured(*names: str, **changes: object) -> dict[str, Any]:
    """The report of request(), as --json would print it."""
    made: dict[str, Any] = json.loads(json.dumps(run.measure(request(*names, **changes))))
    return made
