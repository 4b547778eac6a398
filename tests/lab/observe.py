"""Runs in the guest: who else runs on the given CPUs? Asks the scheduler's own trace, for a few seconds.

`python -m tests.lab.observe 2,3` prints one JSON object: the CPUs that it may run on itself, its cgroup, and every
user task that the scheduler put on one of the CPUs meanwhile, with how often.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SECONDS = 4
INSTANCE = Path("/sys/kernel/tracing/instances/observe")
PF_KTHREAD = 0x00200000
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


def foreigners(trace: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for line in trace.splitlines():
        if found := SWITCH.search(line):
            name, pid = found[2], int(found[3])
            if pid not in (0, os.getpid()) and not is_kernel_thread(pid):
                counts[f"{name} ({pid}) on CPU {int(found[1])}"] += 1
    return dict(counts)


def main(cpus: list[int]) -> None:
    INSTANCE.mkdir()
    try:
        (INSTANCE / "tracing_cpumask").write_text(f"{sum(1 << cpu for cpu in cpus):x}\n")
        (INSTANCE / "trace").write_text("")
        (INSTANCE / "events/sched/sched_switch/enable").write_text("1\n")
        end, turns = time.monotonic() + SECONDS, 0
        while time.monotonic() < end:
            turns += 1  # the measured work: it keeps one CPU busy
        (INSTANCE / "events/sched/sched_switch/enable").write_text("0\n")
        trace = (INSTANCE / "trace").read_text(errors="replace")
    finally:
        INSTANCE.rmdir()
    allowed = sorted(os.sched_getaffinity(0))
    group = Path("/proc/self/cgroup").read_text()
    print(json.dumps({"allowed": allowed, "cgroup": group, "turns": turns, "foreign": foreigners(trace)}))


if __name__ == "__main__":
    main([int(cpu) for cpu in sys.argv[1].split(",")])
