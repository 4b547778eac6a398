"""Fleets for the tests: directories of this machine as hosts."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cbench.running import CBENCH

BIN = Path(sys.executable).parent
pytest.importorskip("ansible", reason="ansible-core is not installed")
MARK = "TEST_FLEET"
# The same values whenever a trial runs: analyses of a disturbed and an undisturbed study are equal.
STUDY = """
[study]
repetitions = {repetitions}
[[test]]
name = "a"
command = "sleep 0.02; echo $((1000 + (7919 * CBENCH_RUN + 104729 * CBENCH_POSITION) % 97))"
[[test]]
name = "b"
command = "sleep 0.02; echo $((1000 + (7907 * CBENCH_RUN + 104723 * CBENCH_POSITION) % 89))"
[fleet]
bin = "{bin}"
"""


def study(folder: Path, repetitions: int = 3, more: str = "") -> Path:
    file = folder / "s.toml"
    file.write_text(STUDY.format(repetitions=repetitions, bin=BIN) + more)
    return file


def hosts(folder: Path, count: int = 2) -> dict[str, object]:
    """An inventory of directories."""
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    names = {f"n{number}": {"quiet_cbench_home": str(folder / "nodes" / f"n{number}")} for number in range(count)}
    return {"all": {"vars": variables, "hosts": names}}


def inventory(folder: Path, count: int = 2) -> Path:
    file = folder / "hosts.json"
    file.write_text(json.dumps(hosts(folder, count)))
    return file


def mark(folder: Path) -> dict[str, str]:
    """The environment of whatever a test starts."""
    return {**os.environ, MARK: str(folder)}


def marked(folder: Path) -> list[int]:
    """The processes with the mark, wherever they are; no zombies, whose environment is empty."""
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"{MARK}={folder}".encode() in each.read_bytes().split(b"\0"):
                found.append(int(each.parent.name))
    return found


class Controller(subprocess.Popen[bytes]):
    """`cbench fleet WORDS`, running."""

    def __init__(self, folder: Path, words: Sequence[str]) -> None:
        super().__init__([*CBENCH, "fleet", *words], cwd=folder, env=mark(folder))

    def cut_short(self) -> None:
        """Without notice; the Ansible process that it has started continues."""
        self.send_signal(signal.SIGKILL)
        self.wait()


def fleet(folder: Path, *words: str, code: int | None = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*CBENCH, "fleet", *words],
        cwd=folder,
        env=mark(folder),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
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


def undisturbed(folder: Path, host: str) -> Path:
    """The store of the same study where nothing happens, on a host of this name."""
    store = folder / f"undisturbed-{host}.db"
    words = ["order", "run", "s.toml", "-o", str(store), "--host", host]
    subprocess.run([*CBENCH, *words], cwd=folder, env=mark(folder), capture_output=True, check=True)
    return store


def analysis(store: Path) -> Any:
    """The output of `cbench order analyze --json`."""
    words = ["order", "analyze", str(store), "--json"]
    done = subprocess.run([*CBENCH, *words], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def same_as_undisturbed(folder: Path, host: str, trials: int) -> None:
    """A node's store has every trial once, in the order in which nothing disturbs them, and the same analysis."""
    store, other = folder / "out" / "results" / f"{host}.db", undisturbed(folder, host)
    once(store, trials)
    assert order(store) == order(other)
    assert analysis(store) == analysis(other)
