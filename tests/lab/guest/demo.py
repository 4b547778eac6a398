"""Runs in the guest of `make demo`: measure a CPU under load before and after `quiet apply`, and restore the host.

An emulated processor takes seconds to start Python. So the commands are loaded once, and each runs in a fork of this
process; the busy loops are stopped while nothing is measured.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator

from cbench import __main__ as cbench
from quiet.cli import start as quiet
from tests.lab.guest import snapshot
from tests.lab.guest.observe import busy_loops

NOISE = "quiet noise --cpus 2 --duration 3 --threshold 100us --no-trace"
MEASURE = "cbench run hash --trials 50 --cpu 2 --no-trace"
MOST_LINES = 5
LEFT_OUT = ("gaps:", "frequency ", "-> ")  # facilities that the emulator lacks, and remedies: the room is for causes
PARTS: dict[str, float] = {}
NEXT = """\
On your own machine:
  quiet why -- ./mybench     report what interrupts your program (changes nothing, needs no root)
  quiet run -- ./mybench     run it on quiet, isolated CPUs, then restore
  cbench ab -- ./old ./new   compare two commands"""


LOADED = ("quiet.cli.app", "quiet.settings.apply", "quiet.settings.restore", "cbench.cli", "cbench.measure.runner")


def main() -> int:
    with part("start"):
        for name in LOADED:
            importlib.import_module(name)
        before = snapshot.take()
    with busy_loops(4) as loops:
        with part("before"):
            say("Before: CPU 2, with 4 busy loops that may run on every CPU")
            run(NOISE, since="CPU 2:")
            run(MEASURE, since="hash ")
        with part("apply"), stopped(loops):
            say("Quiet the host: every setting is recorded in a journal, written, and read back")
            if code := run("quiet apply", 15):
                return code
        with part("after"):
            say("After: the same CPU, with the same 4 busy loops")
            run(NOISE, since="CPU 2:")
            measured = run(f"quiet run -- {MEASURE}", since="hash ")
        with part("restore"), stopped(loops):
            say("Restore, then compare every setting and task with the state before, without quiet")
            restored = run("quiet restore")
    with part("compare"):
        left = snapshot.compare(before, snapshot.take())
    for line in left:
        print(f"STILL CHANGED: {line}")
    if not left:
        print(f"nothing left changed ({len(before['files'])} settings, {len(before['tasks'])} tasks compared)")
    print(f"\n{NEXT}", flush=True)
    with open(f"{os.environ['LAB_OUT']}/parts", "w") as file:
        file.write(", ".join(f"{name} {seconds:.0f} s" for name, seconds in PARTS.items()))
    # cbench exits with 1 when trials differ, as they do in an emulator
    return (measured if measured > 1 else 0) or restored or bool(left)


@contextlib.contextmanager
def part(name: str) -> Iterator[None]:
    """Record how long a part takes."""
    started = time.monotonic()
    try:
        yield
    finally:
        PARTS[name] = time.monotonic() - started


@contextlib.contextmanager
def stopped(processes: list[int]) -> Iterator[None]:
    """These processes do not run in this context."""
    for process in processes:
        os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def say(what: str) -> None:
    print(f"--- {what}", flush=True)


def run(command: str, most: int = MOST_LINES, since: str = "") -> int:
    """Run a command and print the first lines of its output, from the one that begins with `since` on."""
    print(f"$ {command}", flush=True)
    with tempfile.TemporaryFile("w+") as output:
        code = os.waitstatus_to_exitcode(os.waitpid(forked(command.split(), output.fileno()), 0)[1])
        output.seek(0)
        printed = output.read().splitlines()
    lines = [line for line in printed if line.strip() and not line.strip().startswith(LEFT_OUT)]
    begin = next((number for number, line in enumerate(lines) if line.startswith(since)), 0)
    lines = lines[begin:]
    for line in lines[:most]:
        print(line if len(line) <= 110 else f"{line[:107]}...", flush=True)
    if len(lines) > most:
        print(f"({len(lines) - most} more lines)", flush=True)
    return code


def forked(words: list[str], output: int) -> int:
    """Start one of our commands in a fork, which writes to this file; its process id."""
    if pid := os.fork():
        return pid
    os.dup2(output, 1)
    os.dup2(output, 2)
    sys.argv = words
    code = 99
    try:
        (cbench if words[0] == "cbench" else quiet).main()
        code = 0
    except SystemExit as done:
        code = int(done.code or 0)
    except BaseException:  # data that no command prints
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
