"""Access `process:812`: "running", or "stopped" by SIGSTOP."""

from __future__ import annotations

from quiet.host.proc import STATE, start_time, stat_fields
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType


def _get(reader: Reader, name: str) -> str | None:
    fields = stat_fields(reader.text(f"/proc/{name}/stat"))
    return None if not fields else "stopped" if fields[STATE] == "T" else "running"


PROCESS = TargetType(
    "process",
    _get,
    put=lambda host, name, value: host.signal(int(name), "SIGSTOP" if value == "stopped" else "SIGCONT"),
    identity=start_time,
    ends=True,
)
