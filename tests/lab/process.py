"""The emulator as processes of this machine: one at a time, followed while it runs, gone afterwards in any case."""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path


def end_session(process: subprocess.Popen[bytes]) -> None:
    """Kill the session of virtme-ng and QEMU. That is clean: a guest holds nothing that outlives it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(100):
        if not _alive_in_session(process.pid):
            return
        time.sleep(0.05)


def _alive_in_session(session: int) -> list[int]:
    alive = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _parent, _group, its_session = path.read_text().rpartition(")")[2].split()[:4]
            if int(its_session) == session and state != "Z":
                alive.append(int(path.parent.name))
    return alive


class Follower:
    """Hands over the lines that a growing file gains."""

    def __init__(self, path: Path, on_line: Callable[[str], None]) -> None:
        self.path, self.on_line, self.position = path, on_line, 0

    def poll(self, *, last: bool = False) -> None:
        with open(self.path, "rb") as file:
            file.seek(self.position)
            data = file.read()
        if not last and (cut := data.rfind(b"\n") + 1) < len(data):
            data = data[:cut]  # an unfinished line waits, which also keeps characters whole
        self.position += len(data)
        for line in data.decode(errors="replace").splitlines():
            self.on_line(line)


@contextlib.contextmanager
def one_guest_at_a_time(lock_file: Path) -> Iterator[None]:
    """Emulation takes every core; two guests at once would only run into each other's time-outs."""
    lock_file.parent.mkdir(parents=True, exist_ok=True)
    with open(lock_file, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another guest on this machine to end", file=sys.stderr)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Let a polite end from outside be as a Ctrl-C: the clean-up runs, and pytest ends instead of going on."""

    def end(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    old = {}
    with contextlib.suppress(ValueError):  # not the main thread: its caller decides about signals
        old = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
