"""Resets of programs: a command of the user's, a service, or whatever earlier trials have left running."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Mapping

import psutil

from cbench.study import auto_resume, process_tags
from cbench.study.model import Reset
from cbench.study.must import Facts, ResetError, run
from cbench.study.process_tags import Marks
from cbench.study.run_command import Execution

STARTED, INVOCATION = "ActiveEnterTimestampMonotonic", "InvocationID"


def no_systemd(environment: Mapping[str, str]) -> str:
    """Why no service can be restarted here; nothing where one may be."""
    if not auto_resume.RUNNING.is_dir():
        return "the host was not booted by systemd"
    return _no_systemctl(environment)


def _no_systemctl(environment: Mapping[str, str]) -> str:
    if shutil.which("systemctl", path=environment.get("PATH")) is None:
        return "there is no systemctl here: a reset of the kind service needs systemd"
    return ""


class ByCommand:
    """A command of the user's, and one that checks it."""

    reboots = False

    def __init__(self, reset: Reset, folder: str, environment: Mapping[str, str], marks_: Marks) -> None:
        self._reset, self._folder, self._environment, self._marks = reset, folder, environment, marks_

    def reset(self, run: int) -> Facts:
        done = self._run(self._reset.command, run)
        if self._reset.check:
            self._run(self._reset.check, run)
        return {"seconds": done.wall_s, "checked": bool(self._reset.check)}

    def _run(self, command: str, number: int) -> Execution:
        environment = {**self._environment, **self._marks.of_step(process_tags.RESET, number)}
        return run(command, self._folder, environment, self._reset.timeout_s)


class ByService:
    """A systemd unit is restarted; it must have begun anew, in systemd's own books, and be active."""

    reboots = False

    def __init__(self, reset: Reset, folder: str, environment: Mapping[str, str]) -> None:
        self._reset, self._folder, self._environment = reset, folder, environment

    def reset(self, run: int) -> Facts:
        if missing := _no_systemctl(self._environment):
            raise ResetError(missing)
        before = self._state()
        self._run(f"systemctl restart {shlex.quote(self._reset.unit)}")
        after = self._state()
        if after.get("ActiveState") != "active":
            raise ResetError(f"{self._reset.unit} is {after.get('ActiveState') or 'unknown'} after its restart")
        if after.get(STARTED) == before.get(STARTED) or after.get(INVOCATION) == before.get(INVOCATION):
            raise ResetError(
                f"{self._reset.unit} was not restarted: it has run since {after.get(STARTED)} us of this boot"
            )
        if self._reset.check:
            self._run(self._reset.check)
        return {"unit": self._reset.unit, "main_pid": after.get("MainPID"), "active_since_us": after.get(STARTED)}

    def _state(self) -> dict[str, str]:
        names = f"ActiveState,MainPID,{STARTED},{INVOCATION}"
        done = self._run(f"systemctl show --property={names} {shlex.quote(self._reset.unit)}")
        found = (line.partition("=") for line in done.output.decode(errors="replace").splitlines())
        return {name: value for name, _, value in found}

    def _run(self, command: str) -> Execution:
        return run(command, self._folder, self._environment, self._reset.timeout_s)


class ByProcesses:
    """Whatever a study's trials have left running is ended: the next run begins with a fresh process tree.

    What setup has started stays. Found are descendants, and what carries a trial's mark, whoever adopted it.
    """

    reboots = False

    def __init__(self, marks_: Marks) -> None:
        self._marks = marks_
        adopt()

    def reset(self, run: int) -> Facts:
        ended = self._marks.end(lambda mark: mark.position is not None)
        for _ in range(10):  # what is ended may leave children of its own
            left = [each for each in psutil.Process().children(recursive=True) if not self._of_setup(each.pid)]
            if not left:
                return {"ended": ended}
            for each in left:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.kill()
            ended += len(psutil.wait_procs(left, timeout=5)[0])
        raise ResetError(f"process {left[0].pid} of an earlier run does not end")

    def _of_setup(self, pid: int) -> bool:
        mark = self._marks.mark_of(pid)
        return mark is not None and mark.step == process_tags.SETUP


def adopt() -> None:
    """Have orphans among the descendants become children of this process, so that none of them is lost (prctl(2))."""
    import ctypes

    pr_set_child_subreaper = 36
    ctypes.CDLL(None).prctl(pr_set_child_subreaper, 1, 0, 0, 0)
