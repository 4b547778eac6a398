"""Runs in the guest: which CPUs do a program's threads use under a profile, and who else runs there?

`python -m tests.lab.guest.threads PROFILE CPUS NAME COMMAND ...` writes $LAB_OUT/NAME.json. Every CPU has other work.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import defaultdict
from pathlib import Path

from tests.lab.guest.drive import cpus_of, forked
from tests.lab.guest.observe import INSTANCE, busy_loops, is_kernel_thread

FORK = re.compile(r" (\d+\.\d+): sched_process_fork: .* pid=(\d+) child_comm=.* child_pid=(\d+)$")
EXEC = re.compile(r"sched_process_exec: filename=(\S+) pid=(\d+) ")
EXIT = re.compile(r"sched_process_exit: .* pid=(\d+) ")
SWITCH = re.compile(r"\[(\d+)\] \S+ +(\d+\.\d+): sched_switch: .* prev_pid=(\d+) .* next_comm=(.*) next_pid=(\d+) ")


def judge(trace: str, root: int, program: str, cpus: list[int], *, together: bool) -> dict[str, object]:
    """Seconds of the command's tasks on each of these CPUs, and of all others that are not kernel threads.

    Counted from the program's exec to its exit: before and after, the CPUs are not isolated. If tasks begin to work
    together, as the threads of openmp.c do, they are counted from the start of the last one.
    """
    own = {root}
    first = 0  # the process that executes the program, while it runs
    since: dict[int, float] = {}
    names: dict[int, str] = {}
    used: dict[int, float] = dict.fromkeys(cpus, 0.0)
    foreign: dict[str, float] = defaultdict(float)
    for line in trace.splitlines():
        if (fork := FORK.search(line)) and int(fork[2]) in own:
            own.add(int(fork[3]))
            if first and together:
                used, since = dict.fromkeys(cpus, 0.0), dict.fromkeys(since, float(fork[1]))
        if not first and (begun := EXEC.search(line)) and int(begun[2]) in own and begun[1].endswith(f"/{program}"):
            first = int(begun[2])
        if first and (ended := EXIT.search(line)) and int(ended[1]) == first:
            break
        if not (switch := SWITCH.search(line)) or int(switch[1]) not in used:
            continue
        cpu, now, previous = int(switch[1]), float(switch[2]), int(switch[3])
        names[int(switch[5])] = switch[4]
        if first and previous and cpu in since:
            if previous in own:
                used[cpu] += now - since[cpu]
            elif not is_kernel_thread(previous) and not names.get(previous, "").startswith("kworker/"):  # some are gone
                foreign[f"{names.get(previous, '?')} ({previous}) on CPU {cpu}"] += now - since[cpu]
        since[cpu] = now
    return {"used": used, "foreign": foreign}


def main() -> int:
    profile, cpus, name, *command = sys.argv[1:]
    out = Path(os.environ["LAB_OUT"])
    INSTANCE.mkdir()
    try:
        (INSTANCE / "buffer_size_kb").write_text("16384\n")
        for event in ("sched_switch", "sched_process_fork", "sched_process_exec", "sched_process_exit"):
            (INSTANCE / f"events/sched/{event}/enable").write_text("1\n")
        with busy_loops(os.cpu_count() or 1) as loops, open(out / f"{name}.txt", "wb") as file:
            for pid in loops:  # they would run on an idle CPU at once, and leave the others to quiet itself
                os.setpriority(os.PRIO_PROCESS, pid, 19)
            options = ["--no-threads"] if name == "isolated" else []
            root = forked(
                "run", *options, "--profile", profile, "--cpus", cpus, "--", *command, out=file.fileno(), err=2
            )
            code = os.waitstatus_to_exitcode(os.waitpid(root, 0)[1])
        (INSTANCE / "tracing_on").write_text("0\n")
        trace = (INSTANCE / "trace").read_text(errors="replace")
    finally:
        INSTANCE.rmdir()
    together = any(word.endswith("/openmp") for word in command)
    found = judge(trace, root, command[0].rpartition("/")[2], cpus_of(cpus), together=together) | {"code": code}
    (out / f"{name}.json").write_text(json.dumps(found, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
