"""`irq:131`: the CPUs that an interrupt may go to, a CPU list (core-api/irq/irq-affinity.rst)."""

from __future__ import annotations

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType

MADE = " made as "  # in an identity, before what changes when the driver requests the same interrupt again


def _written_file(reader: Reader, name: str) -> str:
    return f"/proc/irq/{name}/smp_affinity_list"


def _watched_files(reader: Reader, name: str) -> tuple[str, str]:
    return f"/proc/irq/{name}/smp_affinity_list", f"/proc/irq/{name}/smp_affinity"


def _get(reader: Reader, name: str) -> str | None:
    return reader.text(f"/proc/irq/{name}/smp_affinity_list")


def _put(host: Host, name: str, value: str) -> None:
    host.write(f"/proc/irq/{name}/smp_affinity_list", value)


def _identity(reader: Reader, name: str) -> str:
    base = f"/sys/kernel/irq/{name}/"
    parts = [reader.text(base + part) for part in ("chip_name", "hwirq", "actions")]
    # the folder's inode is another one when the driver frees the interrupt and requests it again
    return " ".join(part or "-" for part in parts) + f"{MADE}{reader.inode(base)}"


IRQ = TargetType("irq", _get, _put, written_file=_written_file, watched_files=_watched_files, identity=_identity)
