"""Runs in the guest: `quiet noise` ends in different ways, and on CPUs and with permissions that make it hard.

$LAB_OUT/report.json has for each step what the command printed, its exit status, and the trace instances that are left.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from quiet.cli import start
from quiet.host.host import Host
from quiet.noise import budgets, measure, report, table, tracefs
from tests.lab.guest import drive

COARSE = ("--threshold", "1ms")
NOBODY = "65534"
TRACING, PATIENCE_S = Path("/sys/kernel/tracing"), 120
Step = dict[str, Any]


def instances() -> list[str]:
    folder = TRACING / "instances"
    return os.listdir(folder) if folder.is_dir() else []


def step(*options: str, main: Callable[[], object] = start.main, doing: Callable[[int], None] | None = None) -> Step:
    """`doing` is called with the process ID of the command, which is running."""
    with TemporaryFile("w+") as file:
        pid = drive.forked_main(main, "quiet", "noise", *options, out=file.fileno(), err=file.fileno())
        if doing:
            doing(pid)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        file.seek(0)
        return {"said": file.read(), "code": code, "instances": instances()}


def ended_by(number: int) -> Step:
    """The signal comes a second after the tracing has begun."""

    def send(pid: int) -> None:
        limit = time.monotonic() + PATIENCE_S
        while not any("senders" in name for name in instances()) and time.monotonic() < limit:
            time.sleep(0.2)
        time.sleep(1)
        os.kill(pid, number)

    return step("--cpus", "3", "--duration", "100", *COARSE, doing=send)


def tiny_buffer() -> None:
    measure.BUFFER_KB, tracefs.MOST_BYTES = 4, 0
    wanted = measure.NoiseRequest(frozenset({0}), 4.0, 5_000.0)
    print(*table.lines(report.make(measure.measure(Host(), wanted), budgets.NONE, {})), sep="\n")
    raise SystemExit


def as_nobody() -> Step:
    """A new process: modules that it imports late, a fork of this one could not read as another user."""
    command = [
        "setpriv",
        "--reuid",
        NOBODY,
        "--clear-groups",
        "quiet",
        "noise",
        "--cpus",
        "3",
        "--duration",
        "1",
        *COARSE,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return {"said": done.stdout, "code": done.returncode, "instances": instances()}


@contextlib.contextmanager
def wakes() -> Iterator[None]:
    """Events on CPU 0, which fill the buffer however slowly the guest runs."""
    waker = subprocess.Popen(["taskset", "-c", "0", "sh", "-c", "while :; do sleep 0.001; done"])
    try:
        yield
    finally:
        waker.kill()
        waker.wait()


def main() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has its jobs in the background ignore it
    found = {each: ended_by(getattr(signal, f"SIG{each}")) for each in ("INT", "TERM", "HUP", "KILL")}
    found["next"] = step("--cpus", "3", "--duration", "0.5", *COARSE)
    found["default"] = step("--cpus", "3", "--duration", "0.2", "--json")
    with wakes():
        found["full"] = step(main=tiny_buffer)
    Path("/sys/devices/system/cpu/cpu2/online").write_text("0")
    found["offline"] = step("--cpus", "2-3", "--duration", "1")
    found["absent"] = step("--cpus", "7")
    found["everything"] = step("--duration", "0.5", "--cpus", "0-1,3", *COARSE)
    subprocess.run(["umount", TRACING], check=True)
    subprocess.run(["umount", "-l", "/sys/kernel/debug"], check=True)
    found["untraced"] = step("--cpus", "3", "--duration", "1", *COARSE)
    found["nobody"] = as_nobody()
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
