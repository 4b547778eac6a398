"""Access `sched:812`: a thread's scheduling, such as "other 0" (nice value) or "fifo 2" (real-time priority).

Source: proc_pid_stat(5), sched(7).
"""

from __future__ import annotations

import errno

from quiet.host.host import Host
from quiet.host.proc import NICE, POLICY, RT_PRIORITY, start_time, stat_fields
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType

_POLICIES = {"0": "other", "1": "fifo", "2": "rr", "3": "batch", "5": "idle", "6": "deadline", "7": "ext"}


def _get(reader: Reader, name: str) -> str | None:
    fields = stat_fields(reader.text(f"/proc/{name}/stat"))
    if len(fields) <= POLICY:
        return None
    nice, priority, policy = fields[NICE], fields[RT_PRIORITY], _POLICIES.get(fields[POLICY], fields[POLICY])
    return f"{policy} {priority if policy in ('fifo', 'rr') else nice}"


def _put(host: Host, name: str, value: str) -> None:
    policy, _, number = value.partition(" ")
    if policy not in ("other", "fifo", "rr", "batch", "idle"):
        raise OSError(errno.EINVAL, f"'{value}' cannot be set")
    host.set_scheduling(int(name), policy, int(number))


SCHED = TargetType("sched", _get, _put, identity=start_time, ends=True)
