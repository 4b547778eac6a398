"""Access `workqueue:NAME` and `workqueue:global` (all unbound workqueues): the requested CPU mask, not the effective
one.

Sources: core-api/workqueue.rst; kernel/workqueue.c (cpumask_requested, if the kernel has it).
"""

from __future__ import annotations

from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType


def _path(name: str) -> str:
    return f"/sys/devices/virtual/workqueue/{'' if name == 'global' else f'{name}/'}cpumask"


def _get(reader: Reader, name: str) -> str | None:
    requested = reader.text(_path(name) + "_requested")
    return requested if requested is not None else reader.text(_path(name))


WORKQUEUE = TargetType(
    "workqueue",
    _get,
    put=lambda host, name, value: host.write(_path(name), value),
    written_file=lambda reader, name: _path(name),
)
