"""The Technical Note's five workloads as commands: their results are checked, and a competing load is not a child's."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cbench.study.instruments.perf_stat import Counting
from cbench.study.process.run_command import execute
from cbench.workloads import competing, programs
from cbench.workloads.programs import WrongResult, program
from quiet.errors import QuietError
from tests.cbench.running import queued

PYTHON = [sys.executable, "-P", "-m"]


def run(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [*PYTHON, "cbench.workloads.programs", *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=60, check=False)


@contextlib.contextmanager
def load(folder: Path) -> Iterator[str]:
    """A competing load that can be requested."""
    path = str(folder / "load")
    subprocess.run([*PYTHON, "cbench.workloads.competing", "begin", path], check=True, timeout=60)
    try:
        yield path
    finally:
        subprocess.run([*PYTHON, "cbench.workloads.competing", "end", path], check=True, timeout=60)


def test_a_file_that_is_not_a_socket_is_kept(tmp_path: Path) -> None:
    precious = tmp_path / "results.csv"
    precious.write_text("1\n")
    command = [*PYTHON, "cbench.workloads.competing", "begin", str(precious)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert "Address already in use" in done.stderr
    assert precious.read_text() == "1\n"


def loads(path: str) -> list[int]:
    """The processes that serve a socket, and what they have started."""
    found = subprocess.run(["pgrep", "-f", f"competing begin {path}$"], capture_output=True, text=True, check=False)
    servers = [int(pid) for pid in found.stdout.split()]
    children = [
        int(pid) for server in servers for pid in Path(f"/proc/{server}/task/{server}/children").read_text().split()
    ]
    return servers + children


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.parametrize(
    ("which", "arguments", "said"),
    [
        ("0", ["times=2"], {"workload": 0, "times": 2}),
        ("aliquot", ["times=1", "start=276", "times=3"], {"workload": 0, "times": 3}),
        ("2", ["exponent=13", "processes=3"], {"workload": 2, "processes": 3, "exponent": 13}),
        ("3", ["blocks=3", "mib=1"], {"workload": 3, "blocks": 3, "mib": 1}),
        ("4", ["ms=50"], {"workload": 4, "ms": 50}),
    ],
)
def test_a_workload_does_its_work_and_says_how_long_it_took(
    which: str, arguments: list[str], said: dict[str, int]
) -> None:
    for _ in range(10):  # another program may run between the reading of two clocks, but hardly each time
        made = program(which, arguments)
        clocks = [made.pop(name) for name in programs.CLOCKS]
        assert made.pop("ticks") > 0
        assert made == said
        if clocks[1:] == pytest.approx([clocks[0]] * 3, rel=0.01, abs=1e-4):
            return
    raise AssertionError(clocks)


def test_the_etalon_ends_when_its_time_is_up() -> None:
    others = queued()
    took = program("4", ["ms=120"])["raw_s"]
    assert 0.12 <= took <= 0.17 + (queued() - others)


def test_a_perfect_number_is_perfect_whatever_the_number_of_processes() -> None:
    for processes in (1, 2, 7):
        assert program("perfect", [f"processes={processes}", "exponent=17"])["processes"] == processes


def test_a_wrong_result_is_an_error_and_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs.screening, "perfect_number", lambda exponent: 1)
    with pytest.raises(WrongResult, match="the result is wrong: "):
        program("2", ["exponent=13"])


def bad(_: object) -> int:
    os._exit(3)


def test_a_process_that_fails_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "_share", bad)
    with pytest.raises(WrongResult, match="a process that searches for divisors failed"):
        program("2", ["exponent=13", "processes=2"])


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "the program is missing: use 0 to 4, or aliquot, competing, perfect, copy, etalon"),
        (["5"], "'5': unknown program; use 0 to 4, or aliquot, competing, perfect, copy, etalon"),
        (["0", "times=0"], "times=0: must be from 1 to 1,000,000"),
        (["0", "n=3"], "n: unknown; aliquot takes times, start"),
        (
            ["1"],
            "load= is missing: write load=SOCKET, the socket of `python -m cbench.workloads.competing begin SOCKET`",
        ),
        (
            ["1", "load=no"],
            "no: No such file or directory; start the load: python -m cbench.workloads.competing begin no",
        ),
        (
            ["2", "exponent=11"],
            "perfect: exponent=11: must be one of 2, 3, 5, 7, 13, 17, 19, 31, which give",
        ),
    ],
)
def test_unknown_arguments_of_a_workload_are_reported_in_one_line(
    arguments: list[str], line: str, tmp_path: Path
) -> None:
    done = run(*arguments, folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"cbench.workloads.programs: error: {line}")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_competing_load_runs_while_it_is_requested_and_is_counted_for_no_trial(tmp_path: Path) -> None:
    with load(tmp_path) as path:
        command = f"{' '.join(PYTHON)} cbench.workloads.programs 1 load={path} times=60"
        done = execute(command, str(tmp_path), dict(os.environ), 60, [Counting("task-clock")])
        made: dict[str, Any] = json.loads(done.output)
        assert made["load_s"] > 0.05
        counted = done.readings["task-clock"].value / 1e9
        assert counted < done.running_s - 0.5 * made["load_s"]  # the load has had a part of the same CPU
        dd = loads(path)[-1]
        assert Path(f"/proc/{dd}/comm").read_text() == "dd\n"
        assert os.sched_getaffinity(dd) == {made["cpu"]}
        wait_for(lambda: state(dd) == "T")  # a busy CPU has it stop when it is its turn
    assert not Path(path).exists()
    assert not Path(f"/proc/{dd}").exists()


def test_a_trial_that_is_killed_stops_its_load(tmp_path: Path) -> None:
    with load(tmp_path) as path:
        command = [*PYTHON, "cbench.workloads.programs", "1", f"load={path}", "times=100000"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as trial:
            dd = loads(path)[-1]
            wait_for(lambda: state(dd) == "R")
            trial.kill()
        wait_for(lambda: state(dd) == "T")


def test_a_load_that_has_ended_is_an_error(tmp_path: Path) -> None:
    with load(tmp_path) as path, competing.load(path, min(os.sched_getaffinity(0))) as used_s:
        assert used_s() >= 0
        for pid in loads(path):
            os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not loads(path))
        with pytest.raises(QuietError, match="the competing load has ended"):
            used_s()


def wait_for(what: Any) -> None:
    limit = time.monotonic() + 120
    while not what():
        assert time.monotonic() < limit
        time.sleep(0.01)
