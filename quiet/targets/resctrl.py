"""resctrl: which part of the caches a group of CPUs may fill (filesystems/resctrl.rst, before 6.16 arch/x86/).

    mount:/sys/fs/resctrl     "resctrl" or absent: a file system of the kernel that is mounted there
    resctrl:/quiet            a group: "present" or absent
    resctrl:/quiet/cpus_list  a file of it
    schemata:/quiet/L3        one resource of its schemata, domain by domain: "0=ff0;1=00f"
    schemata:/L3              the same of the default group, which has all CPUs and tasks of no other

What the kernel has against a write it says in info/last_cmd_status.
"""

from __future__ import annotations

import errno

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType

ROOT = "/sys/fs/resctrl"
_OURS = ("quiet", "info", "mon_groups", "mon_data")


def groups(reader: Reader) -> list[str]:
    """The groups that somebody else has made, by name."""
    return [n for n in reader.names(ROOT) if n not in _OURS and reader.exists(f"{ROOT}/{n}/schemata")]


def lines(reader: Reader, group: str) -> dict[str, str]:
    """A group's schemata by resource ("" is the default group); empty when there is none."""
    text = reader.text(f"{ROOT}{group}/schemata") or ""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def mounted(reader: Reader, path: str) -> str | None:
    """The type of the file system that is mounted on a directory."""
    for line in (reader.text("/proc/mounts") or "").splitlines():
        fields = line.split(" ")
        if len(fields) > 2 and fields[1] == path:
            return fields[2]
    return None


def _put_mount(host: Host, path: str, value: str | None) -> None:
    if value is not None:
        host.mount(value, path)
    elif path == ROOT and (others := groups(host)):
        # unmounting would end them, and nobody could tell what they were
        raise OSError(errno.EBUSY, f"somebody else's groups are in it: {', '.join(others)}")
    else:
        host.umount(path)


def _get_group(reader: Reader, name: str) -> str | None:
    if name.count("/") > 1:
        return reader.text(ROOT + name)
    return "present" if reader.exists(f"{ROOT}{name}/schemata") else None


def _put_group(host: Host, name: str, value: str | None) -> None:
    if name.count("/") > 1:
        if value is not None:  # otherwise it goes with its group
            _write(host, ROOT + name, value)
    elif value is None:
        host.rmdir(ROOT + name)
    else:
        host.mkdir(ROOT + name)


def _get_line(reader: Reader, name: str) -> str | None:
    group, _, resource = name.rpartition("/")
    return lines(reader, group).get(resource)


def _put_line(host: Host, name: str, value: str | None) -> None:
    group, _, resource = name.rpartition("/")
    if value is not None:
        _write(host, f"{ROOT}{group}/schemata", f"{resource}:{value}")


def _write(host: Host, path: str, value: str) -> None:
    try:
        host.write(path, value)
    except OSError as error:
        said = host.text(f"{ROOT}/info/last_cmd_status")
        if said and said != "ok":
            raise OSError(error.errno, said) from None
        raise


MOUNT = TargetType(mounted, _put_mount)
KIND = TargetType(_get_group, _put_group)
SCHEMATA = TargetType(_get_line, _put_line, ends=True)  # without its group, or the mount, there is nothing to put back
