"""What happens to the host before each run, one class a kind; each makes sure that it happened.

The runner knows one door: reset(), which brings the host into its first state and says how it knows. That of ByReboot
does not come back in this process.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from typing import Protocol

from cbench.study import auto_resume, model
from cbench.study.model import Reset
from cbench.study.must import Facts, ResetError, run
from cbench.study.process_tags import Marks
from cbench.study.run_command import execute
from quiet.host.reader import Reader

__all__ = ["ByReboot", "Facts", "Nothing", "ResetError", "Resetting", "boot_id", "of", "run"]

BOOT_ID = "/proc/sys/kernel/random/boot_id"
COMING_UP = ("initializing", "starting")
POLL_S, ASKED_S = 0.5, 30.0


class Resetting(Protocol):
    """A kind of reset."""

    def reset(self, run: int) -> Facts:
        """Do it before a run, and what shows that it was done. Raises ResetError."""


def of(reset: Reset, folder: str, environment: Mapping[str, str], marks: Marks) -> Resetting:
    """The reset that was asked for."""
    if reset.kind in (model.CACHES, model.COOL):
        from cbench.study.resets.host import ByCaches, ByCooling

        return ByCaches() if reset.kind == model.CACHES else ByCooling(reset)
    if reset.kind in (model.COMMAND, model.SERVICE, model.PROCESSES):
        from cbench.study.resets.tasks import ByCommand, ByProcesses, ByService

        if reset.kind == model.COMMAND:
            return ByCommand(reset, folder, environment, marks)
        return ByService(reset, folder, environment) if reset.kind == model.SERVICE else ByProcesses(marks)
    if reset.kind == model.REBOOT:
        return ByReboot(reset, folder, environment)
    return Nothing()


def obstacle(wanted: Reset, environment: Mapping[str, str], reader: Reader | None = None) -> str:
    """Why this kind of reset can never work here, as far as that is seen without doing it; nothing where it may."""
    if wanted.kind in (model.CACHES, model.COOL):
        from cbench.study.resets import host

        find = host.no_drops if wanted.kind == model.CACHES else host.no_sensor
        return find(wanted, reader or Reader())
    if wanted.kind == model.SERVICE:
        from cbench.study.resets.tasks import no_systemd

        return no_systemd(environment)
    return ""


class Nothing:
    """No reset."""

    def reset(self, run: int) -> Facts:
        return {}


class ByReboot:
    """The host boots anew; who goes on afterwards finds another boot id."""

    def __init__(self, reset: Reset, folder: str, environment: Mapping[str, str]) -> None:
        self._reset, self._folder, self._environment = reset, folder, environment

    def reset(self, _run: int) -> Facts:
        os.sync()
        # From here on an end from outside is the reboot's: nothing is to be cleared up, the study goes on after it.
        found = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
        try:
            run(self._reset.command or "systemctl reboot", self._folder, self._environment, self._reset.timeout_s)
            time.sleep(self._reset.timeout_s)  # until the host ends this process too
        finally:
            for number, handler in found.items():
                signal.signal(number, handler)
        raise ResetError(f"the host did not reboot within {self._reset.timeout_s:g} s")

    def came_up(self) -> str:
        """Wait until the boot is over. As systemd says it: running, degraded (a unit has failed), ...; else nothing."""
        if not auto_resume.RUNNING.is_dir():
            return ""
        limit = time.monotonic() + self._reset.timeout_s
        while True:  # not --wait: that has been seen to miss the end of the boot and to wait on
            try:
                done = execute("systemctl is-system-running", self._folder, self._environment, ASKED_S)
            except OSError:
                return ""
            state = done.output.decode(errors="replace").strip()
            if (done.code is not None and state not in COMING_UP) or time.monotonic() >= limit:
                return state
            time.sleep(POLL_S)


def boot_id() -> str:
    """Of this boot."""
    return Reader().text(BOOT_ID) or ""
