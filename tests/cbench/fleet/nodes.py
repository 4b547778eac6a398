"""Fleets for the tests: folders of this machine as hosts."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.cbench.running import CBENCH

BIN = Path(sys.executable).parent
pytest.importorskip("ansible", reason="ansible-core is not installed")
STUDY = """
[study]
repetitions = {repetitions}
[[test]]
name = "a"
command = "sleep 0.02"
read = "wall"
[[test]]
name = "b"
command = "sleep 0.02"
read = "wall"
[fleet]
bin = "{bin}"
"""


def study(folder: Path, repetitions: int = 3, more: str = "") -> Path:
    file = folder / "s.toml"
    file.write_text(STUDY.format(repetitions=repetitions, bin=BIN) + more)
    return file


def hosts(folder: Path, count: int = 2) -> dict[str, object]:
    """An inventory of folders."""
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    names = {f"n{number}": {"quiet_cbench_home": str(folder / "nodes" / f"n{number}")} for number in range(count)}
    return {"all": {"vars": variables, "hosts": names}}


def inventory(folder: Path, count: int = 2) -> Path:
    file = folder / "hosts.json"
    file.write_text(json.dumps(hosts(folder, count)))
    return file


def fleet(folder: Path, *words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*CBENCH, "fleet", *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert code is None or done.returncode == code, done.stderr + done.stdout
    return done


def once(store: Path, trials: int) -> None:
    """Every trial is in the store, exactly once."""
    with closing(sqlite3.connect(store)) as connection:
        places = Counter(connection.execute("SELECT run, position FROM study_trial").fetchall())
    assert len(places) == trials
    assert set(places.values()) == {1}


def order(store: Path) -> list[tuple[int, int, int]]:
    """Run, position and test of every trial, as they were measured."""
    with closing(sqlite3.connect(store)) as connection:
        return connection.execute("SELECT run, position, test FROM study_trial ORDER BY begun_ns").fetchall()
