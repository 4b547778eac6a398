"""Runs in the guest: `quiet watch --cpus` beside isolated CPUs that are interrupted a known number of times.

`python -m tests.lab.guest.monitor ROUNDS SECONDS` writes $LAB_OUT/report.json: in each round, what interrupted the
isolated CPUs for SECONDS without the monitor and for SECONDS with it; then what was planted, and what the history says.
`python -m tests.lab.guest.monitor --calm SECONDS` watches as users do, with 5 interrupts of CPU 3 a minute, and reports
the cost and what came to both CPUs.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from quiet.machine.affinity import forgo_huge_pages
from quiet.watch import monitor
from tests.lab.guest import drive
from tests.lab.guest.isolated import counts

CPUS, CPU = "2-3", 3
STORE, OUT = Path("/run/store"), Path("/run/monitor.jsonl")
PLANTED, PAUSE_S, START_S = 5, 2.0, 120.0
NOT_HERE = {"ERR", "MIS", "MCP", "PMI", "TLB", "RTR"}
Report = dict[str, Any]


class Watch:
    """A `quiet watch` in a separate process."""

    def __init__(self, *options: str) -> None:
        OUT.write_text("")
        with open(OUT, "w") as out:
            arguments = ("--cpus", CPUS, "--store", str(STORE), "--json", *options)
            self.pid = drive.forked("watch", *arguments, out=out.fileno(), err=2)
        limit = time.monotonic() + START_S
        while not any(line["event"] == "watching" for line in self.lines()) and time.monotonic() < limit:
            time.sleep(0.1)

    def lines(self) -> list[Report]:
        return [json.loads(line) for line in OUT.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def cost_s(self) -> float:
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9

    def ticks(self) -> int:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    def end(self) -> Report:
        os.kill(self.pid, signal.SIGTERM)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return {"code": code, "lines": self.lines()}


class Sleeper:
    """A process on an isolated CPU that sleeps until it is woken: an interrupt, and two task switches."""

    def __init__(self) -> None:
        hear, self._tell = os.pipe()
        self.woken, woke = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.sched_setaffinity(0, {CPU})
            os.write(woke, b"r")
            while os.read(hear, 1) != b"e":
                os.write(woke, b"w")
            os._exit(0)
        os.read(self.woken, 1)
        time.sleep(1)

    def wake(self) -> None:
        os.write(self._tell, b"w")
        os.read(self.woken, 1)

    def end(self) -> None:
        os.write(self._tell, b"e")
        os.waitpid(self.pid, 0)


def both() -> dict[int, dict[str, int]]:
    return {cpu: counts(cpu) for cpu in drive.cpus_of(CPUS)}


def grown(before: dict[int, dict[str, int]], after: dict[int, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {
        str(cpu): {
            line: count - before[cpu].get(line, 0)
            for line, count in lines.items()
            if count != before[cpu].get(line, 0) and line not in NOT_HERE
        }
        for cpu, lines in after.items()
    }


def passed(seconds: float) -> dict[str, dict[str, int]]:
    before = both()
    time.sleep(seconds)
    return grown(before, both())


@contextmanager
def watching(report: Report, *options: str) -> Iterator[Watch]:
    watch = Watch(*options)
    try:
        yield watch
    finally:
        report["ended"] = watch.end()


def rounds(report: Report, number: int, seconds: float) -> None:
    vars(monitor)["COUNTS_SHARE"] = 1.0  # as often as the interval says, though the emulator is slow
    report["rounds"] = []
    for _ in range(number):
        found: Report = {"without": passed(seconds)}
        with watching(found, "--interval", "1") as watch:
            time.sleep(1)
            cost_s = watch.cost_s()
            found["with"] = passed(seconds)
            found["cost_s"] = watch.cost_s() - cost_s
        report["rounds"].append(found)
        print({key: found[key] for key in ("without", "with", "cost_s")}, flush=True)
    sleeper = Sleeper()
    began = time.time()
    with watching(report, "--interval", "1"):
        before = both()
        for _ in range(PLANTED):
            sleeper.wake()
            time.sleep(PAUSE_S)
        report["counted"] = grown(before, both())
    sleeper.end()
    report["history"] = drive.quiet_json(
        "watch", "--history", "--store", str(STORE), "--cpu", str(CPU), "--since", f"{time.time() - began + 1:.0f}s"
    )
    report["table"] = drive.quiet("watch", "--history", "--store", str(STORE), "--cpu", str(CPU))["out"]
    print(report["table"], flush=True)


def calm(report: Report, seconds: float) -> None:
    """As users watch: the default interval. An isolated CPU is woken 5 times per minute."""
    sleeper = Sleeper()
    with watching(report) as watch:
        time.sleep(5)
        before, cost_s, ticks, began = both(), watch.cost_s(), watch.ticks(), time.monotonic()
        woken = 0
        while time.monotonic() < began + seconds:
            time.sleep(60 / PLANTED)
            sleeper.wake()
            woken += 1
        report["seconds"] = time.monotonic() - began
        report["cost_s"], report["ticks"] = watch.cost_s() - cost_s, watch.ticks() - ticks
        report["woken"], report["counted"] = woken, grown(before, both())
    sleeper.end()
    report["history"] = drive.quiet_json("watch", "--history", "--store", str(STORE), "--cpu", str(CPU))


def main() -> int:
    report: Report = {}
    forgo_huge_pages()  # khugepaged would interrupt every CPU for this process, with the monitor and without
    try:
        if sys.argv[1] == "--calm":
            calm(report, float(sys.argv[2]))
        else:
            rounds(report, int(sys.argv[1]), float(sys.argv[2]))
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
