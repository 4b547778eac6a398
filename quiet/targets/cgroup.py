"""Access a cgroup in the hierarchy with the cpuset controller (admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst).

cgroup:/quiet              the cgroup: "present" or absent
cgroup:/quiet/cpuset.cpus  a file of the cgroup
cgroup:/+cpuset            "on" if the controller is passed on to the cgroup's children, otherwise "off"

The isolated CPUs' cgroup is /quiet.slice if systemd manages cgroups, otherwise /quiet: see `group`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from quiet.host.host import Host
from quiet.host.proc import cpuset_mount
from quiet.host.reader import Reader
from quiet.targets import systemd
from quiet.targets.target_type import TargetType

GROUP, SLICE = "/quiet", "/quiet.slice"


def group(reader: Reader) -> str:
    """The cgroup of the isolated CPUs on this host: a slice if systemd uses cgroup v2 with all controllers.

    The cgroup /quiet of an earlier version is used as long as it exists.
    """
    if cpuset_mount(reader) != (2, "/sys/fs/cgroup") or not systemd.booted(reader):
        return GROUP
    return GROUP if reader.exists(f"/sys/fs/cgroup{GROUP}/cgroup.procs") else SLICE


def groups_below(reader: Reader, path: str) -> Iterator[str]:
    """Yield the directories of a cgroup and of its descendants; each run has a separate cgroup."""
    yield path
    for name in reader.names(path):
        if reader.exists(f"{path}/{name}/cgroup.procs"):
            yield from groups_below(reader, f"{path}/{name}")


def _written_file(reader: Reader, name: str) -> str:
    mount = cpuset_mount(reader)[1]
    parent, _, leaf = name.rpartition("/")
    return f"{mount}{parent}/cgroup.subtree_control" if leaf.startswith("+") else mount + name


def _get(reader: Reader, name: str) -> str | None:
    path, leaf = _written_file(reader, name), name.rpartition("/")[2]
    if leaf.startswith("+"):
        enabled = reader.text(path)
        return None if enabled is None else "on" if leaf[1:] in enabled.split() else "off"
    if "." in leaf:
        return reader.text(path)
    return "present" if reader.exists(path) else None


def _put(host: Host, name: str, value: str) -> None:
    path, leaf = _written_file(host, name), name.rpartition("/")[2]
    if leaf.startswith("+"):
        host.write(path, ("+" if value == "on" else "-") + leaf[1:])
    elif "." in leaf:
        host.write(path, value)
    else:
        host.mkdir(path)


def _remove(host: Host, name: str) -> None:
    path, leaf = _written_file(host, name), name.rpartition("/")[2]
    if leaf.startswith("+"):
        host.write(path, "-" + leaf[1:])
    elif "." not in leaf:
        _remove_group(host, path)
    elif leaf == "cpuset.cpus.partition" and host.exists(path):
        host.write(path, "member")  # release the partition before its cgroup is removed


def _remove_group(host: Host, path: str) -> None:
    empty_group(host, path, path.rpartition("/")[0])
    host.rmdir(path)


def empty_group(host: Host, path: str, outside: str) -> None:
    """Move the tasks of a cgroup and its descendants to the cgroup `outside`, and remove the descendants."""
    first, *below = groups_below(host, path)
    for each in reversed(below):
        with contextlib.suppress(FileNotFoundError):  # the cgroup of a run disappears when the run ends
            _move_tasks(host, each, outside)
            host.rmdir(each)
    _move_tasks(host, first, outside)


def _move_tasks(host: Host, path: str, to: str) -> None:
    v2 = host.exists(path + "/cgroup.procs") and host.exists(path + "/cgroup.controllers")
    members = "cgroup.procs" if v2 else "tasks"
    outside = f"{to}/{members}"
    for _ in range(20):  # a task may fork while it is moved
        tasks = (host.text(f"{path}/{members}") or "").split()
        for task in tasks:
            try:
                host.write(outside, task)
            except ProcessLookupError:
                continue
        if not tasks:
            break


CGROUP = TargetType("cgroup", _get, _put, _remove, _written_file)
