"""Access `task:812`: the CPUs on which a thread may run, a CPU list (sched_setaffinity(2))."""

from __future__ import annotations

from quiet.host.proc import start_time, status_field
from quiet.targets.target_type import TargetType

TASK = TargetType(
    "task",
    get=lambda reader, name: status_field(reader.text(f"/proc/{name}/status"), "Cpus_allowed_list"),
    put=lambda host, name, value: host.set_affinity(int(name), value),
    identity=start_time,
    ends=True,
)
