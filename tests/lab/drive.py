"""Runs in the guest: a list of steps, each recorded with what it printed, for the tests to judge outside.

`python -m tests.lab.drive round-trip [isolation]` (or `kill-apply N SEED`, `kill-restore N SEED`) writes
$LAB_OUT/report.json.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from tests.lab import disturb, snapshot
from tests.lab.observe import busy_loops

QUIET = ("quiet",)
BENCH = ("--profile", "bench")
Report = dict[str, Any]


def quiet(*arguments: str, timeout: float = 120) -> Report:
    started = time.monotonic()
    done = subprocess.run([*QUIET, *arguments], capture_output=True, text=True, timeout=timeout, check=False)
    seconds = round(time.monotonic() - started, 2)
    return {"code": done.returncode, "out": done.stdout, "err": done.stderr, "seconds": seconds}


def quiet_json(*arguments: str) -> Report:
    step = quiet(*arguments, "--json")
    try:
        step["json"] = json.loads(step["out"])
    except ValueError as error:
        step["json"] = {"unreadable": str(error)}
    return step


def cpus_of(listed: str) -> list[int]:
    cpus: list[int] = []
    for part in listed.split(","):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus


def differences(before: snapshot.Snapshot) -> list[str]:
    return snapshot.compare(before, snapshot.take())


def round_trip(report: Report, *, with_isolation: bool) -> None:
    report["disturbed"] = disturb.disturb()
    before = snapshot.take()
    report["left_by_snapshot"] = differences(before)
    report["plan"] = quiet_json("plan", *BENCH)
    report["left_by_plan"] = differences(before)
    report["apply"] = quiet("apply", *BENCH)
    report["changed_by_apply"] = differences(before)
    report["plan_again"] = quiet_json("plan", *BENCH)
    report["verify"] = quiet_json("verify")
    report["restore"] = quiet("restore")
    report["left"] = differences(before)
    if with_isolation:
        isolation(report, cpus_of(report["plan"]["json"]["cpus"]["isolated"]))
        report["left_by_run"] = differences(before)


def isolation(report: Report, cpus: list[int]) -> None:
    """Who runs on the isolated CPUs while every CPU has work to do, without quiet and with it."""
    listed = ",".join(map(str, cpus))
    observe = (sys.executable, "-m", "tests.lab.observe", listed)
    with busy_loops(os.cpu_count() or 1):
        for name, command in (("without", ()), ("with", ("quiet", "run", *BENCH, "--"))):
            done = subprocess.run([*command, *observe], capture_output=True, text=True, timeout=300, check=False)
            seen = json.loads(done.stdout) if done.stdout.startswith("{") else {}
            report[f"run_{name}"] = {"code": done.returncode, "err": done.stderr, "out": done.stdout, **seen}


JOURNAL = Path("/run/quiet/journal.jsonl")
RESTORING = b'"op":"restore"'
SETTLED = b'"op":"settled"'


def journal() -> bytes:
    try:
        return JOURNAL.read_bytes()
    except OSError:
        return b""


def watched(command: str, progress: float, duration: float) -> float:
    """Run a command and kill it at a share of its writing (1: when it has ended); how long it wrote until then.

    The journal tells where it is: an apply's grows from its first line to "settled", a restore's says when it begins
    and is gone when it has ended. The clock would not do, for most of the time passes before anything is written.
    """
    arguments = ["apply", *BENCH] if command == "apply" else ["restore"]

    def begun() -> bool:
        return bool(journal()) if command == "apply" else RESTORING in journal()

    def ended() -> bool:
        return SETTLED in journal() if command == "apply" else not JOURNAL.exists()

    with subprocess.Popen([*QUIET, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not begun():
            time.sleep(0.001)
        start = time.monotonic()
        while process.poll() is None and time.monotonic() - start < progress * duration and not ended():
            time.sleep(0.001)
        took = time.monotonic() - start
        if progress < 1:
            process.send_signal(signal.SIGKILL)
    return took


def killed(report: Report, command: str, rounds: int, seed: int) -> None:
    """Kill `quiet apply` (or `quiet restore`) at random moments; `quiet restore` must put everything back."""
    disturb.disturb()
    before = snapshot.take()
    quiet("apply", *BENCH)
    quiet("restore")
    if command == "restore":
        quiet("apply", *BENCH)
    duration = watched(command, 1, 60)
    report["warm"], report["left_by_warm_up"] = quiet("restore"), differences(before)
    draw = random.Random(seed)
    report["rounds"] = []
    for _ in range(rounds):
        if command == "restore":
            quiet("apply", *BENCH)
        progress = draw.random()
        moment = watched(command, progress, duration)
        cut = differences(before)
        restore = quiet("restore")
        left = differences(before)
        entry = {"moment": moment, "cut": len(cut), "restore": restore, "left": left}
        report["rounds"].append(entry)
        print(f"killed {moment:.2f} s into its writing: {len(cut)} changed, left {left or 'nothing'}", flush=True)
        if left:
            break  # what follows would start from a wrong state


def main() -> int:
    what, *numbers = sys.argv[1:]
    report: Report = {}
    try:
        if what == "round-trip":
            round_trip(report, with_isolation="isolation" in numbers)
        else:
            killed(report, what.removeprefix("kill-"), *map(int, numbers))
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
