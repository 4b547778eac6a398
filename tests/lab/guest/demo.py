"""Runs in the guest of `make demo`: measure a CPU under load before and after `quiet apply`, and restore the host."""

from __future__ import annotations

import subprocess
import sys

from tests.lab.guest import snapshot
from tests.lab.guest.observe import busy_loops

NOISE = "quiet noise --cpus 2 --duration 3 --threshold 100us --no-trace"
MEASURE = "cbench run hash --trials 100 --cpu 2 --no-trace"
MOST_LINES = 7
NEXT = """\
On your own machine:
  quiet why -- ./mybench     report what interrupts your program (changes nothing, needs no root)
  quiet run -- ./mybench     run it on quiet, isolated CPUs, then restore
  cbench ab -- ./old ./new   compare two commands"""


def main() -> int:
    before = snapshot.take()
    with busy_loops(4):
        say("Before: CPU 2, with 4 busy loops that may run on every CPU")
        run(NOISE, since="CPU 2:")
        run(MEASURE, since="hash ")
        say("Quiet the host: every setting is recorded in a journal, written, and read back")
        if code := run("quiet apply", 15):
            return code
        say("After: the same CPU, with the same 4 busy loops")
        run(NOISE, since="CPU 2:")
        measured = run(f"quiet run -- {MEASURE}", since="hash ")
        say("Restore, then compare every setting and task with the state before, without quiet")
        restored = run("quiet restore")
    left = snapshot.compare(before, snapshot.take())
    for line in left:
        print(f"STILL CHANGED: {line}")
    if not left:
        print(f"nothing left changed ({len(before['files'])} settings, {len(before['tasks'])} tasks compared)")
    print(f"\n{NEXT}", flush=True)
    # cbench exits with 1 when trials differ, as they do in an emulator
    return (measured if measured > 1 else 0) or restored or bool(left)


def say(what: str) -> None:
    print(f"--- {what}", flush=True)


def run(command: str, most: int = MOST_LINES, since: str = "") -> int:
    """Run a command and print the first lines of its output, from the one that begins with `since` on."""
    print(f"$ {command}", flush=True)
    done = subprocess.run(command.split(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.strip()]
    begin = next((number for number, line in enumerate(lines) if line.startswith(since)), 0)
    lines = lines[begin:]
    for line in lines[:most]:
        print(line if len(line) <= 110 else f"{line[:107]}...", flush=True)
    if len(lines) > most:
        print(f"({len(lines) - most} more lines)", flush=True)
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
