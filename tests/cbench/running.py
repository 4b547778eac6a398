"""Runs the real command in a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

CBENCH = [sys.executable, "-P", "-m", "cbench"]


def cbench(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(env or {})}
    return subprocess.run(
        [*CBENCH, *arguments], capture_output=True, text=True, env=environment, timeout=60, check=False
    )


def report(*arguments: str) -> dict[str, Any]:
    """The object that `cbench ... --json` prints; stdout must hold nothing else."""
    done = cbench(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    content: dict[str, Any] = json.loads(done.stdout)
    return content


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that says what went wrong; there is no traceback."""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("cbench: error: ")]
    assert len(lines) == 1, done.stderr
    assert done.stdout == ""
    return lines[0].removeprefix("cbench: error: ")
