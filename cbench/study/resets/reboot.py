"""Reset by rebooting the host; the study continues in another boot and in another process."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from typing import ClassVar

from cbench.study.process.run_command import execute
from cbench.study.records import StoredFacts
from cbench.study.resets.reset import SYSTEMD_RUNNING, Reset, ResetContext, ResetError
from quiet import Reader

BOOT_ID = "/proc/sys/kernel/random/boot_id"
COMING_UP = ("initializing", "starting")
POLL_S, ASKED_S = 0.5, 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootReset(Reset):
    """Reboots the host. The process that resumes the study confirms the reboot by a different boot ID."""

    kind: ClassVar[str] = "reboot"
    keys: ClassVar[tuple[str, ...]] = ("command", "check")

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        """Reboot the host; a reboot ends this process. Raises ResetError if the host does not reboot within `timeout_s`
        seconds, and CommandError if the command fails.
        """
        os.sync()
        # From here on, a signal that ends this process belongs to the reboot: no cleanup, because the study resumes
        # afterwards.
        handlers = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
        try:
            self.execute(self.command or "systemctl reboot", context)
            time.sleep(self.timeout_s)  # until the reboot ends this process too
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler)
        raise ResetError(f"the host did not reboot within {self.timeout_s:g} s")

    def came_up(self, context: ResetContext) -> str:
        """Wait until the boot is complete, at most `timeout_s` seconds. Returns systemd's state, such as running,
        degraded (a unit has failed) or, after a timeout, starting; "" if it is unknown.
        """
        if not SYSTEMD_RUNNING.is_dir():
            return ""
        limit = time.monotonic() + self.timeout_s
        while True:  # `--wait` can miss the end of the boot and hang
            try:
                done = execute("systemctl is-system-running", context.folder, context.environment, ASKED_S)
            except OSError:
                return ""
            state = done.output.decode(errors="replace").strip()
            if (done.code is not None and state not in COMING_UP) or time.monotonic() >= limit:
                return state
            time.sleep(POLL_S)


def boot_id() -> str:
    """The ID of this boot; "" if the kernel does not report it."""
    return Reader().text(BOOT_ID) or ""
