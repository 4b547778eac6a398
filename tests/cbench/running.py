"""Runs cbench: the real command in a separate process, or its function in this one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cbench.machine.process import GroupGuard
from cbench.results import to_json
from cbench.run import run
from tests.cbench.forks import Forks

CBENCH = [sys.executable, "-P", "-m", "cbench"]
PATIENCE_S = 300  # for something to happen that happens at once on an idle machine


FORKS = Forks()


def cbench(
    *arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process: a fork, unless the environment needs a new process."""
    environment = {**os.environ, **(env or {})}
    if FORKS.suit(environment):
        return FORKS.run(arguments, cwd or Path.cwd(), environment, PATIENCE_S)
    command = [*CBENCH, *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=cwd, timeout=PATIENCE_S, check=False
    )


def comes(happened: Callable[[], object]) -> bool:
    """Wait until it has happened; False when it does not."""
    limit = time.monotonic() + PATIENCE_S
    while not happened():
        if time.monotonic() > limit:
            return False
        time.sleep(0.02)
    return True


def killed_in_place_of_naming_a_group() -> None:
    """From now on, this process is killed where it would name the group of a command that runs already to its guard."""
    me, hold = os.getpid(), GroupGuard.hold

    def named(guard: GroupGuard, group: int) -> None:
        if group and os.getpid() == me:
            os.kill(me, signal.SIGKILL)
        hold(guard, group)

    GroupGuard.hold = named


def alive(pid: int) -> bool:
    """Whether it exists, and is not an unreaped zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def queued() -> float:
    """Seconds in which this thread could have run so far and others did (Documentation/scheduler/sched-stats.rst)."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one line of the error; there is no traceback."""
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("cbench: error: ")]
    assert len(lines) == 1, done.stderr
    assert done.stdout == ""
    return lines[0].removeprefix("cbench: error: ")


def request(*names: str, **changes: Any) -> run.RunOptions:
    """`cbench run NAMES --quick --trials 5 --warmup 0` with changes."""
    given: dict[str, Any] = {"trials": 5, "warmup": "0", "quick": True, "timeout": 10.0}
    return run.RunOptions(workloads=names or ("hash",), **{**given, **changes})


def measured(*names: str, **changes: Any) -> dict[str, Any]:
    """The report of request(), as --json would print it."""
    made: dict[str, Any] = json.loads(json.dumps(to_json(run.measure(request(*names, **changes)))))
    return made
