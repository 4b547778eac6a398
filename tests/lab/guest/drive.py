"""Runs in the guest: a list of steps, each recorded with what it printed, for the tests to judge outside.

`python -m tests.lab.guest.drive round-trip [isolation]` (or `kill-apply N SEED`, `kill-restore N SEED`) writes
$LAB_OUT/report.json.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from quiet.cli import start
from quiet.targets import registry
from tests.lab.guest import disturb, holding, snapshot
from tests.lab.guest.observe import busy_loops, watched

BENCH = ("--profile", "bench")
Report = dict[str, Any]


def quiet(*arguments: str) -> Report:
    """Call a command in a fork of this process: starting Python takes the emulated machine longer than the command."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        started = time.monotonic()
        code = called(*arguments, out=out.fileno(), err=err.fileno())
        seconds = round(time.monotonic() - started, 2)
        texts = [file.read() for file in (out, err) if not file.seek(0)]
        return {"code": code, "out": texts[0], "err": texts[1], "seconds": seconds}


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


def trip(profile: str) -> Report:
    """Plan, apply, verify and restore, each step with the differences that it made or left."""
    options = ("--profile", profile)
    found: Report = {}
    before = snapshot.take()
    found["plan"] = quiet_json("plan", *options)
    found["left_by_plan"] = differences(before)
    found["apply"] = quiet("apply", *options)
    found["changed_by_apply"] = differences(before)
    found["plan_again"] = quiet_json("plan", *options)
    found["verify"] = quiet_json("verify", "--duration", "0")
    found["status"] = quiet_json("status")
    found["restore"] = quiet("restore")
    found["left"] = differences(before)
    return found


def round_trip(report: Report, *, with_isolation: bool) -> None:
    report["disturbed"] = disturb.disturb()
    before = snapshot.take()
    report["left_by_snapshot"] = differences(before)
    for profile in ("bench", "strict"):
        report[profile] = trip(profile)
    report["held"] = holding.held(quiet)
    report["left_by_held"] = differences(before)
    if with_isolation:
        isolation(report, cpus_of(report["bench"]["plan"]["json"]["cpus"]["isolated"]))
        report["left_by_run"] = differences(before)


def isolation(report: Report, cpus: list[int]) -> None:
    """Who runs on the isolated CPUs while every CPU has work to do, without quiet and with it."""
    with busy_loops(os.cpu_count() or 1) as loops:
        for pid in loops:
            os.kill(pid, signal.SIGSTOP)
        report["run_without"] = watched(cpus, loops, lambda *program: subprocess.Popen(program).pid)
        report["run_with"] = watched(cpus, loops, lambda *program: forked("run", *BENCH, "--", *program, err=2))


MOST_DELAY_S = 0.01  # from a write to the kill: somewhere in what comes after it
WRITES = mmap.mmap(-1, 8)  # shared with the forks: how many settings they have written


def writes() -> int:
    (count,) = struct.unpack("q", WRITES)
    return int(count)


def noted(put: Callable[..., None]) -> Callable[..., None]:
    """The same, and that it was done is noted."""

    def put_and_note(*arguments: object) -> None:
        put(*arguments)
        WRITES[:] = struct.pack("q", writes() + 1)

    return put_and_note


def forked(*arguments: str, out: int | None = None, err: int | None = None) -> int:
    """Start a command in a fork of this process, which has everything loaded; its process id.

    Starting Python takes the emulated machine ten times as long as the command itself.
    """
    return forked_main(start.main, "quiet", *arguments, out=out, err=err)


def forked_main(main: Callable[[], object], *words: str, out: int | None = None, err: int | None = None) -> int:
    """The same for any command's entry point."""
    pid = os.fork()
    if pid:
        return pid
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null if out is None else out, 1)
    os.dup2(null if err is None else err, 2)
    registry.put = noted(registry.put)
    sys.argv = [*words]
    code = 99
    try:
        main()
    except SystemExit as done:
        code = int(done.code or 0)
    except BaseException:  # data that no command prints
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def called(*arguments: str, out: int | None = None, err: int | None = None) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(forked(*arguments, out=out, err=err), 0)[1])


def cut_short(command: str, after: int | None, delay: float = 0.0, profile: str = "bench") -> int:
    """Run a command and kill it `delay` seconds after so many writes (None: let it end); how many it had done by then.

    Time alone would not do: most of it passes before anything is written, and writes come in bursts.
    """
    WRITES[:] = bytes(8)
    pid = forked(*(["apply", "--profile", profile] if command == "apply" else ["restore"]))
    while True:
        if after is not None and writes() >= after:
            time.sleep(delay)
            os.kill(pid, signal.SIGKILL)
            break
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            break
        time.sleep(0.0002)
    os.waitpid(pid, 0)
    return writes()


def killed(report: Report, command: str, rounds: int, seed: int) -> None:
    """Kill `quiet apply` (or `quiet restore`) at random moments; `quiet restore` must restore everything."""
    disturb.disturb()
    before = snapshot.take()
    every, report["left_by_warm_up"] = {}, []
    for profile in ("bench", "bench", "strict"):  # the first is slower
        called("apply", "--profile", profile)
        if command == "apply":
            called("restore")
        every[profile] = cut_short(command, None, profile=profile)
        called("restore")
        report["left_by_warm_up"] += differences(before)
    draw = random.Random(seed)
    report["rounds"] = []
    for number in range(rounds):
        profile = ("bench", "strict")[number % 2]
        if command == "restore":
            called("apply", "--profile", profile)
        after = draw.randrange(every[profile])
        done = cut_short(command, after, draw.random() * MOST_DELAY_S, profile)
        cut = differences(before)
        code = called("restore")
        left = differences(before)
        seen = {"profile": profile, "after": done, "cut": len(cut), "restore": code, "left": left}
        report["rounds"].append(seen)
        print(
            f"{profile}: killed after {done} of {every[profile]} writes: {len(cut)} changed, left {left or 'nothing'}"
        )
        sys.stdout.flush()
        if left:
            break  # the next steps would start from a wrong state


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
