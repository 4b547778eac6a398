"""`task:812`: the CPUs that a thread may run on, a CPU list (sched_setaffinity(2))."""

from __future__ import annotations

from quiet.host.host import Host
from quiet.host.proc import start_time, status_field
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType


def _get(reader: Reader, name: str) -> str | None:
    return status_field(reader.text(f"/proc/{name}/status"), "Cpus_allowed_list")


def _put(host: Host, name: str, value: str) -> None:
    host.set_affinity(int(name), value)


TASK = TargetType("task", _get, _put, identity=start_time, ends=True)
