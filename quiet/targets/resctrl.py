"""Access a resctrl group, which limits the part of the caches that its CPUs may fill.

    resctrl:/quiet            the group: "present" or absent
    resctrl:/quiet/cpus_list  a file of the group

The kernel explains a rejected write in info/last_cmd_status. Source: filesystems/resctrl.rst (before Linux 6.16
arch/x86/).
"""

from __future__ import annotations

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType

ROOT = "/sys/fs/resctrl"
_OURS = ("quiet", "info", "mon_groups", "mon_data")


def groups(reader: Reader) -> list[str]:
    """The names of the groups that other programs created."""
    return [n for n in reader.names(ROOT) if n not in _OURS and reader.exists(f"{ROOT}/{n}/schemata")]


def write(host: Host, path: str, value: str) -> None:
    """Write a file of a group. Raises OSError with the kernel's explanation."""
    try:
        host.write(path, value)
    except OSError as error:
        status = host.text(f"{ROOT}/info/last_cmd_status")
        if status and status != "ok":
            raise OSError(error.errno, status) from None
        raise


def _get(reader: Reader, name: str) -> str | None:
    if name.count("/") > 1:
        return reader.text(ROOT + name)
    return "present" if reader.exists(f"{ROOT}{name}/schemata") else None


def _put(host: Host, name: str, value: str) -> None:
    if name.count("/") > 1:
        write(host, ROOT + name, value)
    else:
        host.mkdir(ROOT + name)


def _remove(host: Host, name: str) -> None:
    if name.count("/") < 2:  # a file disappears with its group
        host.rmdir(ROOT + name)


RESCTRL = TargetType("resctrl", _get, _put, _remove)
