"""The emulator as processes of this machine: as many as there are cores, followed while they run, gone afterwards."""

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
from typing import IO


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


def slots() -> int:
    """How many emulator threads this machine runs side by side: more would only run into each other's time-outs."""
    return max(1, len(os.sched_getaffinity(0)))


@contextlib.contextmanager
def room_for_a_guest(folder: Path, *, whole: bool) -> Iterator[None]:
    """Wait until a core is free of every process's guests (`whole`: all cores), and reserve it in this context."""
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        locks = [stack.enter_context(open(folder / f"lock-{number}", "w")) for number in range(slots())]
        with open(folder / "lock", "w") as turn:  # one after another: a process that needs all slots is not starved
            _lock(turn)
            if whole:
                for lock in locks:
                    _lock(lock)
            else:
                while not any(_try(lock) for lock in locks):
                    time.sleep(0.5)
        yield


def _lock(file: IO[str]) -> None:
    if not _try(file):
        print("waiting for another guest on this machine to end", file=sys.stderr)
        fcntl.flock(file, fcntl.LOCK_EX)


def _try(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


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
