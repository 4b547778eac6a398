"""`process:812`: "running", or "stopped" by SIGSTOP."""

from __future__ import annotations

from quiet.host.host import Host
from quiet.host.proc import STATE, start_time, stat_fields
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType


def _get(reader: Reader, name: str) -> str | None:
    fields = stat_fields(reader.text(f"/proc/{name}/stat"))
    return None if not fields else "stopped" if fields[STATE] == "T" else "running"


def _put(host: Host, name: str, value: str) -> None:
    host.signal(int(name), "SIGSTOP" if value == "stopped" else "SIGCONT")


PROCESS = TargetType("process", _get, _put, identity=start_time, ends=True)
