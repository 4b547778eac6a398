"""What happens to the host before each run, one class a kind; each makes sure that it happened.

The runner knows two doors: reset(), which brings the host into its first state and says how it knows, and reboots,
which says that reset() does not come back in this process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from cbench.study import model
from cbench.study.marks import Marks
from cbench.study.model import Reset
from cbench.study.must import Facts, ResetError, run
from quiet.host import Reader

__all__ = ["ByReboot", "Facts", "Nothing", "ResetError", "Resetting", "boot_id", "of", "run"]

BOOT_ID = "/proc/sys/kernel/random/boot_id"


class Resetting(Protocol):
    """A kind of reset."""

    @property
    def reboots(self) -> bool: ...

    def reset(self, run: int) -> Facts:
        """Do it before a run, and what shows that it was done. Raises ResetError."""


def of(
    reset: Reset, folder: str, environment: Mapping[str, str], before: Callable[[], None], marks: Marks
) -> Resetting:
    """The reset that was asked for. `before`: called right before a reboot, when nothing may be lost any more."""
    if reset.kind in (model.CACHES, model.COOL):
        from cbench.study.reset_host import ByCaches, ByCooling

        return ByCaches() if reset.kind == model.CACHES else ByCooling(reset)
    if reset.kind in (model.COMMAND, model.SERVICE, model.PROCESSES):
        from cbench.study.reset_tasks import ByCommand, ByProcesses, ByService

        if reset.kind == model.COMMAND:
            return ByCommand(reset, folder, environment, marks)
        return ByService(reset, folder, environment) if reset.kind == model.SERVICE else ByProcesses(marks)
    if reset.kind == model.REBOOT:
        return ByReboot(reset, folder, environment, before)
    return Nothing()


class Nothing:
    """No reset."""

    reboots = False

    def reset(self, run: int) -> Facts:
        return {}


class ByReboot:
    """The host boots anew; who goes on afterwards finds another boot id."""

    reboots = True

    def __init__(self, reset: Reset, folder: str, environment: Mapping[str, str], before: Callable[[], None]) -> None:
        self._reset, self._folder, self._environment, self._before = reset, folder, environment, before

    def reset(self, _run: int) -> Facts:
        self._before()
        os.sync()
        run(self._reset.command or "systemctl reboot", self._folder, self._environment, self._reset.timeout_s)
        time.sleep(self._reset.timeout_s)  # until the host ends this process too
        raise ResetError(f"the host did not reboot within {self._reset.timeout_s:g} s")


def boot_id() -> str:
    """Of this boot."""
    return Reader().text(BOOT_ID) or ""
