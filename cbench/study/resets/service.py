"""Reset by restarting a systemd unit."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

from cbench.study.records import StoredFacts
from cbench.study.resets.reset import SYSTEMD_RUNNING, Reset, ResetContext, ResetError
from cbench.study.toml_table import TomlTable
from quiet import Reader

STARTED, INVOCATION = "ActiveEnterTimestampMonotonic", "InvocationID"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReset(Reset):
    """Restarts a systemd unit. systemd must then report a new start time, a new invocation ID, and an active unit."""

    kind: ClassVar[str] = "service"
    keys: ClassVar[tuple[str, ...]] = ("check", "unit")
    example: ClassVar[str] = """\
# unit = "x.service"      # kind service: the systemd unit to restart
"""

    @classmethod
    def parse(cls, table: TomlTable, timeout_s: float, settle_s: float) -> Self:
        return super(ServiceReset, cls).parse(table, timeout_s, settle_s).needs("unit", table)

    def obstacle(self, environment: Mapping[str, str], reader: Reader) -> str:
        if not SYSTEMD_RUNNING.is_dir():
            return "the host was not booted by systemd"
        return _no_systemctl(environment)

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        if missing := _no_systemctl(context.environment):
            raise ResetError(missing)
        before = self._state(context)
        self.execute(f"systemctl restart {shlex.quote(self.unit)}", context)
        after = self._state(context)
        if after.get("ActiveState") != "active":
            raise ResetError(f"{self.unit} is {after.get('ActiveState') or 'unknown'} after its restart")
        if after.get(STARTED) == before.get(STARTED) or after.get(INVOCATION) == before.get(INVOCATION):
            raise ResetError(f"{self.unit} was not restarted: active since {after.get(STARTED)} us after boot")
        if self.check:
            self.execute(self.check, context)
        return {"unit": self.unit, "main_pid": after.get("MainPID"), "active_since_us": after.get(STARTED)}

    def _state(self, context: ResetContext) -> dict[str, str]:
        names = f"ActiveState,MainPID,{STARTED},{INVOCATION}"
        done = self.execute(f"systemctl show --property={names} {shlex.quote(self.unit)}", context)
        pairs = (line.partition("=") for line in done.output.decode(errors="replace").splitlines())
        return {name: value for name, _, value in pairs}


def _no_systemctl(environment: Mapping[str, str]) -> str:
    if shutil.which("systemctl", path=environment.get("PATH")) is None:
        return "systemctl is not on the PATH, but a reset of kind 'service' needs it"
    return ""
