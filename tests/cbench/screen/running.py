"""Small experiments that run for real: each `cbench screen ...` in a separate process."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import cbench.screen.command
import cbench.screen.run  # noqa: F401 - loaded before the fork, not in each
from tests.cbench.study.running import Command

HEAD = "iterations = 2"


def started(*arguments: str | Path, folder: Path) -> Command:
    """`cbench screen ARGUMENTS`, running."""
    return Command(arguments, folder, "screen")


def screen(*arguments: str | Path, folder: Path, group: str = "screen") -> subprocess.CompletedProcess[str]:
    """The same to its end."""
    command = Command(arguments, folder, group)
    try:
        out, err = command.communicate()
    except subprocess.TimeoutExpired:
        os.kill(command.pid, signal.SIGKILL)
        raise
    assert command.returncode is not None
    return subprocess.CompletedProcess(command.args, command.returncode, out, err)


def factor(name: str, levels: Mapping[str, str], head: str = "") -> str:
    """One factor's text: for each level how it is set."""
    parts = [f"[[factor]]\nname = '{name}'\n{head}\n"]
    parts += [f"[[factor.level]]\nname = '{level}'\n{way}\n" for level, way in levels.items()]
    return "".join(parts)


def experiment(*factors: str, command: str = "echo 1", head: str = HEAD, more: str = "") -> str:
    """The text of an experiment whose one workload prints its one number."""
    workload = f"[[workload]]\ncommand = '''{command}'''\n"
    return f"[screen]\n{head}\n{''.join(factors)}{workload}[[response]]\nname = 'y'\n{more}"


def written(folder: Path, text: str) -> Path:
    path = folder / "e.toml"
    path.write_text(text)
    return path
