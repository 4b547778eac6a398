"""A suite whose times are drawn, so that no busy machine changes them, and gates of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.cbench.running import cbench

SUITE = """
import random, sys
path, slower = sys.argv[1], float(sys.argv[2])
with open(path, "w") as file:
    for test in range(3):
        for _ in range(3):
            value = 1000 * (test + 1) * (slower if test == 1 else 1) * random.gauss(1, 0.001)
            print(f"BenchmarkT{test} 100 {value:.4f} ns/op", file=file)
"""
COMMAND = f"{sys.executable} -S suite.py {{results}} 1.0"
SLOWER = f"{sys.executable} -S suite.py {{results}} 1.05"


def gate(folder: Path, *options: str, text: str = "") -> subprocess.CompletedProcess[str]:
    written(folder, text or f"old = '{COMMAND}'\nnew = '{COMMAND}'\nblocks = 12\n")
    return cbench("gate", str(folder / "gate.toml"), *options)


def written(folder: Path, text: str) -> None:
    """The suite and this gate.toml."""
    (folder / "suite.py").write_text(SUITE)
    (folder / "gate.toml").write_text(text)


def repository(folder: Path) -> Callable[..., str]:
    """Git in a new repository."""

    def git(*words: str) -> str:
        own = ("-c", "user.name=t", "-c", "user.email=t@t", "-C", str(folder))
        return subprocess.run(["git", *own, *words], check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    return git
