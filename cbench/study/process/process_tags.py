"""Tag the environment of a study's commands, so that the processes of a trial can be identified.

A trial can outlive a killed runner, because it runs in a session of its own. A resumed study first identifies such a
trial by its tag and ends it. Tags also keep the size of the environment constant, because that size shifts the stack,
and so affects measurements (T. Mytkowicz et al., "Producing wrong data without doing anything obviously wrong!", ASPLOS
2009).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass

from quiet import QuietError, Reader

MARK, RUN, POSITION, TEST, PADDING = "CBENCH_TRIAL", "CBENCH_RUN", "CBENCH_POSITION", "CBENCH_TEST", "CBENCH_PADDING"
SETUP, TEARDOWN, RESET = "setup", "teardown", "reset"
PATIENCE_S = 10.0


@dataclass(frozen=True, slots=True)
class ProcessTag:
    """The owner of a process: a trial, identified by `run` and `position`, or a `step` such as a reset. `run` is None
    for a step of the whole study, such as its setup.
    """

    step: str
    run: int | None = None
    position: int | None = None


class ProcessTags:
    """The tags of one study. `identity`: a name that is unique to the study; `runs`: the number of runs; `tests`: the
    names of the tests.
    """

    def __init__(self, identity: str, runs: int, tests: tuple[str, ...]) -> None:
        self._identity = identity
        longest = max(len(name.encode()) for name in tests)
        self._most = 2 * (len(str(runs)) + len(str(len(tests)))) + longest

    def of_trial(self, run: int, position: int, test: str) -> dict[str, str]:
        """The environment variables of a trial, which take the same number of bytes for all trials; `run` and
        `position` count from 0.
        """
        used = 2 * (len(str(run)) + len(str(position))) + len(test.encode())
        return {
            MARK: f"{self._identity}/{run}/{position}",
            RUN: str(run),
            POSITION: str(position),
            TEST: test,
            PADDING: "x" * (self._most - used),
        }

    def of_step(self, step: str, run: int | None = None) -> dict[str, str]:
        """The environment variables of processes outside trials."""
        return {MARK: f"{self._identity}/{'' if run is None else run}/{step}"}

    def tag_of(self, pid: int) -> ProcessTag | None:
        """The tag of a process; None if the process does not belong to this study or cannot be read."""
        start = f"{MARK}={self._identity}/"
        environment = Reader().text(f"/proc/{pid}/environ") or ""
        mark = next((each for each in environment.split("\0") if each.startswith(start)), None)
        if mark is None:
            return None
        run, _, rest = mark[len(start) :].partition("/")
        number = int(run) if run.isdecimal() else None
        return ProcessTag("", number, int(rest)) if rest.isdecimal() else ProcessTag(rest, number)

    def end(self, which: Callable[[ProcessTag], bool]) -> int:
        """Kill all processes whose tag `which` accepts, and wait for their end. Returns the number of killed processes.
        Raises QuietError if one survives.
        """
        ended: set[int] = set()
        limit = time.monotonic() + PATIENCE_S
        while left := [pid for pid in Reader().numbered("/proc") if self._is(pid, which)]:
            for pid in left:
                self._kill(pid, which, limit)
            ended |= set(left)
            if time.monotonic() > limit:
                raise QuietError(f"process {left[0]} of this study cannot be killed; end it, then resume")
        return len(ended)

    def _is(self, pid: int, which: Callable[[ProcessTag], bool]) -> bool:
        tag = self.tag_of(pid) if pid != os.getpid() else None
        return tag is not None and which(tag)

    def _kill(self, pid: int, which: Callable[[ProcessTag], bool], limit: float) -> None:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        try:
            if self._is(pid, which):  # another process may have reused this PID before the pidfd was opened
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
                select.select([fd], [], [], max(0.0, limit - time.monotonic()))
        finally:
            os.close(fd)
