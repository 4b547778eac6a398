"""Runs in the guest after users.sh: the cost of a short `quiet run`, in seconds, beside `sudo true` and pyperf.

Every round times each command once, in turn: the ratios are within a round.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence

from tests.lab.guest.run_users import processes

ROUNDS = int(os.environ.get("ROUNDS", "7"))
SECONDS = 600
USER = 1000
LINGER = ("quiet", "run", "--linger", "600")
PYPERF = (sys.executable, "-m", "pyperf", "system")
Times = dict[str, list[float]]


def seconds(*commands: Sequence[str], user: int = 0) -> float:
    """Elapsed time of the commands, one after the other; each has to succeed."""
    home = "/home/u" if user else "/root"
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": home}
    total = 0.0
    for command in commands:
        program = shutil.which(command[0]) or command[0]
        began = time.monotonic()
        done = subprocess.run(
            [program, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            env=env,
            cwd="/",
            user=user,
            group=user,
            extra_groups=[],
            check=False,
        )
        total += time.monotonic() - began
        if done.returncode not in (0, 1 if "pyperf" in command else 0):
            raise RuntimeError(f"{command}: exit code {done.returncode}: {done.stderr.decode()}")
    return round(total, 4)


def lingering() -> Times:
    """As the user: `sudo true`, and runs while the profile stays applied."""
    with open("/etc/sudoers", "a") as rules:
        rules.write(f"u ALL=(root) NOPASSWD: {shutil.which('true')}\n")
    commands = {
        "sudo true": ("sudo", "-n", "true"),
        "python": (sys.executable, "-I", "-S", "-c", "pass"),
        "run": (*LINGER, "--", "true"),
        "run, no report": (*LINGER, "--quiet-report", "--", "true"),
    }
    times: Times = {name: [] for name in commands}
    for _ in range(2):
        for command in commands.values():
            seconds(command, user=USER)  # applies; files read once are cached
    for _ in range(ROUNDS):
        for name, command in commands.items():
            times[name].append(seconds(command, user=USER))
    os.kill(processes("run-helper")[0], signal.SIGTERM)
    while os.path.exists("/run/quiet/journal.jsonl"):
        time.sleep(0.1)
    return times


def alone() -> Times:
    """As root: a run that applies and restores, and pyperf's tune and reset."""
    times: Times = {"pyperf": [], "run": [], "run, no report": []}
    for number in range(1 + min(ROUNDS, 5)):
        each = {
            "pyperf": seconds((*PYPERF, "tune"), (*PYPERF, "reset")),
            "run": seconds(("quiet", "run", "--", "true")),
            "run, no report": seconds(("quiet", "run", "--quiet-report", "--", "true")),
        }
        for name, value in each.items() if number else ():
            times[name].append(value)
    return times


def main() -> int:
    print(json.dumps({"lingering": lingering(), "alone": alone()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
