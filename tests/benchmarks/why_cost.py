"""What `quiet why` by counts costs a CPU-bound command: the command alone and under `quiet why`, alternating.

    python tests/benchmarks/why_cost.py [PAIRS] [--seconds SECONDS] [--trace]

Each pair runs the same fixed work once alone and once observed, in an order that alternates. Printed, as the median of
the pairs with a 95 % interval (order statistics): the ratio of the command's CPU time, the ratio of its elapsed time,
and the CPU time of `quiet why` while the command runs, as a share of the command's CPU time and of its elapsed time.
Its cost before and after the command is measured with `true` and printed separately. On a loaded machine elapsed times
say little. Changes nothing on this host. --trace: by trace, where this user may.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

QUIET = Path(sys.executable).parent / "quiet"
LOOP = "import sys\nfor _ in range(int(sys.argv[1])): pass"
CALIBRATION = 10_000_000


class Times(NamedTuple):
    """Seconds: of the command, and the CPU time of everything that was started."""

    cpu: float
    wall: float
    all_cpu: float


def alone(command: Sequence[str]) -> Times:
    began = time.monotonic()
    pid = os.posix_spawn(command[0], command, os.environ)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"{command[0]} ended with {os.waitstatus_to_exitcode(status)}")
    cpu = used.ru_utime + used.ru_stime
    return Times(cpu, time.monotonic() - began, cpu)


def observed(command: Sequence[str], options: Sequence[str]) -> Times:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "why.json")
        whole = alone([str(QUIET), "why", *options, "--report", str(file), "--", *command])
        report = json.loads(file.read_text())
    return Times(report["cpu_s"], report["wall_s"], whole.cpu)


def interval(values: Sequence[float]) -> tuple[float, float]:
    """The order statistics that hold the median with at least 95 %; the extremes where there are too few values."""
    ordered, n = sorted(values), len(values)
    rank, outside = 0, 2 / 2**n
    while outside + 2 * math.comb(n, rank + 1) / 2**n <= 0.05:
        rank += 1
        outside += 2 * math.comb(n, rank) / 2**n
    return ordered[rank], ordered[-1 - rank]


def show(title: str, values: Sequence[float]) -> None:
    low, high = interval(values)
    print(f"{title:<52} {statistics.median(values):+8.3f} %  [{low:+.3f}, {high:+.3f}]")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="?", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=4.0, help="CPU time of the command")
    parser.add_argument("--trace", action="store_true", help="by trace instead of by counts")
    given = parser.parse_args()
    options = () if given.trace else ("--no-trace",)

    base = [sys.executable, "-I", "-S", "-c", LOOP]
    rounds = round(CALIBRATION * given.seconds / alone([*base, str(CALIBRATION)]).cpu)
    work = [*base, str(rounds)]
    plain: list[Times] = []
    under: list[Times] = []
    fixed: list[float] = []
    load = os.getloadavg()[0]
    for turn in range(given.pairs):
        for observe in (turn % 2 == 0, turn % 2 == 1):
            (under if observe else plain).append(observed(work, options) if observe else alone(work))
        short = observed(["/bin/true"], options)
        fixed.append(short.all_cpu - short.cpu)

    start = statistics.median(fixed)
    pairs = list(zip(plain, under, strict=True))
    cpu = statistics.median(times.cpu for times in plain)
    wall = statistics.median(times.wall for times in plain)
    print(f"{platform.machine()}, {os.cpu_count()} CPUs, Linux {platform.release()}, {time.strftime('%Y-%m-%d')}")
    print(f"load {load:.1f} before, {os.getloadavg()[0]:.1f} after")
    print(f"{given.pairs} pairs of a command of {cpu:.2f} s of CPU time, {wall:.2f} s elapsed, user {os.geteuid()}")
    show("CPU time of the command, observed to alone", [100 * (b.cpu / a.cpu - 1) for a, b in pairs])
    show("elapsed time of the command, observed to alone", [100 * (b.wall / a.wall - 1) for a, b in pairs])
    show(
        "CPU time of quiet while it runs, of the command's",
        [100 * (b.all_cpu - b.cpu - start) / b.cpu for _, b in pairs],
    )
    show(
        "CPU time of quiet while it runs, of the elapsed time",
        [100 * (b.all_cpu - b.cpu - start) / b.wall for _, b in pairs],
    )
    low, high = interval(fixed)
    print(f"CPU time of quiet before and after the command: {start:.3f} s [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
