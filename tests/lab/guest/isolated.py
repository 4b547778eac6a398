"""Runs in a guest: `python -m tests.lab.guest.isolated CPU N TRIALS`, trials of hash on an isolated CPU.

Prints an object: the CPU's counts of /proc/interrupts, line by line, before the first trial and after the last, and
the trials' values. No task leaves the CPU in that time, and nothing else runs there.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cbench._cbench import ffi, lib
from cbench.machine import counters
from cbench.measure.series import TrialSeries
from quiet.machine import affinity

WARMUP_CHUNKS = 20  # the tick stops some time after the task has come to be alone


def counts(cpu: int) -> dict[str, int]:
    """The CPU's column of every line that has one."""
    head, *lines = Path("/proc/interrupts").read_text().splitlines()
    column = head.split().index(f"CPU{cpu}")
    found = {}
    for line in lines:
        name, _, rest = line.partition(":")
        cells = rest.split()
        if len(cells) > column and cells[column].isdecimal():
            found[name.strip()] = int(cells[column])
    return found


def main(arguments: list[str]) -> int:
    cpu, n, wanted = (int(each) for each in arguments)
    affinity.place(cpu)
    counter, handle = counters.choose("cycles", cpu)
    series = TrialSeries(handle, cpu, ffi.addressof(lib, "cb_hash_run"), ffi.NULL, n, n)
    for _ in range(WARMUP_CHUNKS):
        series.run(10)
    values: list[int] = []
    before = counts(cpu)
    while len(values) < wanted:
        values += [trial.value for trial in series.run(wanted - len(values))]
    after = counts(cpu)
    print(json.dumps({"counter": counter.name, "before": before, "after": after, "values": values}))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
