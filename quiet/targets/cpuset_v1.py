"""Access `cpuset:812`: the cpuset of a thread, on cgroup v1 (admin-guide/cgroup-v1/cpusets.rst)."""

from __future__ import annotations

from quiet.host.proc import cpuset_mount, start_time
from quiet.targets.target_type import TargetType

CPUSET_V1 = TargetType(
    "cpuset",
    get=lambda reader, name: reader.text(f"/proc/{name}/cpuset"),
    put=lambda host, name, value: host.write(f"{cpuset_mount(host)[1]}{value.rstrip('/')}/tasks", name),
    identity=start_time,
    ends=True,
)
