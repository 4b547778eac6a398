"""`cpuset:812`: the cpuset that a thread is in, on cgroup v1 (admin-guide/cgroup-v1/cpusets.rst)."""

from __future__ import annotations

from quiet.host.host import Host
from quiet.host.proc import cpuset_mount, start_time
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType


def _get(reader: Reader, name: str) -> str | None:
    return reader.text(f"/proc/{name}/cpuset")


def _put(host: Host, name: str, value: str) -> None:
    host.write(f"{cpuset_mount(host)[1]}{value.rstrip('/')}/tasks", name)


CPUSET_V1 = TargetType("cpuset", _get, _put, identity=start_time, ends=True)
