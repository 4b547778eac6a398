"""Access `irq:131`: the CPUs to which an interrupt may be delivered, a CPU list (core-api/irq/irq-affinity.rst)."""

from __future__ import annotations

from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType

MADE = " made as "  # in an identity, precedes the part that changes when the driver requests the interrupt again


def _path(name: str) -> str:
    return f"/proc/irq/{name}/smp_affinity_list"


def _identity(reader: Reader, name: str) -> str:
    base = f"/sys/kernel/irq/{name}/"
    parts = [reader.text(base + part) for part in ("chip_name", "hwirq", "actions")]
    # the directory's inode changes when the driver frees the interrupt and requests it again
    return " ".join(part or "-" for part in parts) + f"{MADE}{reader.inode(base)}"


IRQ = TargetType(
    "irq",
    get=lambda reader, name: reader.text(_path(name)),
    put=lambda host, name, value: host.write(_path(name), value),
    written_file=lambda reader, name: _path(name),
    watched_files=lambda reader, name: (_path(name), f"/proc/irq/{name}/smp_affinity"),
    identity=_identity,
)
