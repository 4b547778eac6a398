"""Runs in the guest: who else runs on the given CPUs? Uses the scheduler's own trace, for a few seconds."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

SECONDS = 4
INSTANCE = Path("/sys/kernel/tracing/instances/observe")
PF_KTHREAD = 0x00200000
WORK = 'echo $$ >"$1/pid"; n=0; until [ -e "$1/end" ]; do n=$((n+1)); done; echo $n >"$1/turns"'
SWITCH = re.compile(r"\[(\d+)\].* next_comm=(.*) next_pid=(\d+) ")


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[list[int]]:
    """User tasks that want to run all the time and may run everywhere."""
    processes = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(count)]
    try:
        yield [process.pid for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()


def is_kernel_thread(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return bool(int(stat[stat.rindex(")") + 2 :].split()[6]) & PF_KTHREAD)


def foreigners(trace: str, own: int) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for line in trace.splitlines():
        if found := SWITCH.search(line):
            name, pid = found[2], int(found[3])
            if pid not in (0, own) and not is_kernel_thread(pid):
                counts[f"{name} ({pid}) on CPU {int(found[1])}"] += 1
    return dict(counts)


@contextlib.contextmanager
def tracing(cpus: list[int]) -> Iterator[list[str]]:
    """Trace every task switch on these CPUs inside this context; the list has the trace's text afterwards."""
    trace: list[str] = []
    INSTANCE.mkdir()
    try:
        (INSTANCE / "tracing_cpumask").write_text(f"{sum(1 << cpu for cpu in cpus):x}\n")
        (INSTANCE / "events/sched/sched_switch/enable").write_text("1\n")
        yield trace
        (INSTANCE / "events/sched/sched_switch/enable").write_text("0\n")
        trace.append((INSTANCE / "trace").read_text(errors="replace"))
    finally:
        INSTANCE.rmdir()


@contextlib.contextmanager
def going(loops: list[int]) -> Iterator[None]:
    """These processes run inside this context; before and after they are stopped, because all else would be slow."""
    for pid in loops:
        os.kill(pid, signal.SIGCONT)
    try:
        yield
    finally:
        for pid in loops:
            os.kill(pid, signal.SIGSTOP)


def watched(cpus: list[int], loops: list[int], start: Callable[..., int]) -> dict[str, Any]:
    """Where a busy piece of work runs, and who else runs on these CPUs while it and the loops do.

    `start` starts a program with its arguments and returns the process to wait for.
    """
    with tempfile.TemporaryDirectory(dir="/run") as name:
        folder = Path(name)
        waiting = start("sh", "-c", WORK, "work", name)
        pid = int(_content(folder / "pid"))
        with tracing(cpus) as trace, going(loops):
            time.sleep(SECONDS)
            status = Path(f"/proc/{pid}/status").read_text()
            group = Path(f"/proc/{pid}/cgroup").read_text()
        (folder / "end").touch()
        turns = int(_content(folder / "turns"))
        code = os.waitstatus_to_exitcode(os.waitpid(waiting, 0)[1])
    allowed = re.search(r"^Cpus_allowed_list:\s*(\S+)", status, re.MULTILINE)
    return {
        "code": code,
        "allowed": allowed and allowed[1],
        "cgroup": group,
        "turns": turns,
        "foreign": foreigners(trace[0], pid),
    }


def _content(path: Path) -> str:
    limit = time.monotonic() + 120
    while not path.exists() or not path.read_text().endswith("\n"):
        if time.monotonic() > limit:
            raise TimeoutError(f"{path} was not written")
        time.sleep(0.05)
    return path.read_text()
