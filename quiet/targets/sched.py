"""sched:812: how a thread is scheduled, "other 0" (with its nice value) or "fifo 2" (with its real-time priority).

Source: proc_pid_stat(5), sched(7).
"""

from __future__ import annotations

import errno

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType

_POLICIES = {"0": "other", "1": "fifo", "2": "rr", "3": "batch", "5": "idle", "6": "deadline", "7": "ext"}


def _fields(reader: Reader, name: str) -> list[str]:
    text = reader.text(f"/proc/{name}/stat")
    return text.rpartition(")")[2].split() if text else []  # from the third field on


def _get(reader: Reader, name: str) -> str | None:
    fields = _fields(reader, name)
    if len(fields) < 39:
        return None
    nice, priority, policy = fields[16], fields[37], _POLICIES.get(fields[38], fields[38])
    return f"{policy} {priority if policy in ('fifo', 'rr') else nice}"


def _put(host: Host, name: str, value: str | None) -> None:
    policy, _, number = (value or "").partition(" ")
    if policy not in ("other", "fifo", "rr", "batch", "idle"):
        raise OSError(errno.EINVAL, f"'{value}' cannot be set")
    host.set_scheduling(int(name), policy, int(number))


def _identity(reader: Reader, name: str) -> str | None:
    fields = _fields(reader, name)
    return fields[19] if len(fields) > 19 else None  # starttime


KIND = TargetType(_get, _put, _identity, ends=True)
