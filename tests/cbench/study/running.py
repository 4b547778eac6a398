"""Small studies that run for real: `cbench order ...` in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from cbench.study.store import StudyStore

ROOT = Path(__file__).parents[3]
MORE: Mapping[str, str] = {"PYTHONPATH": str(ROOT)}


def started(*arguments: str | Path, folder: Path, **more: str) -> subprocess.Popen[str]:
    """`cbench order ARGUMENTS` in a session of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "cbench", "order", *map(str, arguments)],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **MORE, **more},
        start_new_session=True,
    )


def order(*arguments: str | Path, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """The same to its end."""
    with started(*arguments, folder=folder, **more) as process:
        out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def written(folder: Path, text: str) -> Path:
    path = folder / "s.toml"
    path.write_text(text)
    return path


def study(tests: Mapping[str, str], head: str = "repetitions = 2", reset: str = "") -> str:
    """The text of a study of commands."""
    parts = [f"[study]\n{head}\n"]
    if reset:
        parts.append(f"[reset]\n{reset}\n")
    parts += [f"[[test]]\nname = {name!r}\ncommand = '''{command}'''\n" for name, command in tests.items()]
    return "\n".join(parts)


def rows(path: Path) -> list[tuple[int, int, int, str | None, float | None]]:
    """Run, position, test, failure and value of every trial."""
    with StudyStore.open(path) as store:
        values = {(run, position): value for run, position, _, value in store.values()}
        return [
            (run, position, test, failure, values.get((run, position)))
            for run, position, test, failure, _, _ in store.trials()
        ]
