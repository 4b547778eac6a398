"""Targets: every piece of host state is a named string that can be read and written.

    file:/sys/...            the content of a file
    irq:131                  the CPUs an interrupt may go to (smp_affinity_list)
    workqueue:global|NAME    the CPU mask asked for, not the one in force (cpumask_requested, where there is one)
    cgroup:/quiet            a cgroup of the cpuset hierarchy: "present" or absent
    cgroup:/quiet/cpuset.cpus  a file of it
    cgroup:/+cpuset          whether the controller is passed on to a cgroup's children: "on" or "off"
    cpuset:812               the cpuset a thread is in (cgroup v1)
    task:812                 the CPUs a thread may run on
    process:812              "running" or "stopped"

Other words before the colon are in quiet.targets.types.

Absent is None. Writing None to a target means: as when it did not exist.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.types import KINDS

_MADE = " made as "  # in an identity, before what changes when the same thing is made anew


def split(target: str) -> tuple[str, str]:
    """("irq", "131") of "irq:131"."""
    kind, _, name = target.partition(":")
    return kind, name


def cgroup_mount(reader: Reader) -> tuple[int, str]:
    """(version, mount point) of the hierarchy that has the cpuset controller; (0, "") when there is none."""
    v1 = ""
    for line in (reader.text("/proc/mounts") or "").splitlines():
        fields = line.split(" ")
        if len(fields) < 4:
            continue
        if fields[2] == "cgroup2" and "cpuset" in (reader.text(fields[1] + "/cgroup.controllers") or "").split():
            return 2, fields[1]
        if fields[2] == "cgroup" and "cpuset" in fields[3].split(","):
            v1 = fields[1]
    return (1, v1) if v1 else (0, "")


def stat_fields(text: str | None) -> list[str]:
    """The fields of /proc/PID/stat from the third on (the second may hold spaces and parentheses)."""
    return text.rpartition(")")[2].split() if text else []


def status_field(reader: Reader, path: str, name: str) -> str | None:
    """One line of a /proc/PID/status file by its name."""
    text = reader.text(path)
    start = text.find(f"\n{name}:") if text else -1
    return text[start:].split(":", 1)[1].partition("\n")[0].strip() if text and start >= 0 else None


def get(reader: Reader, target: str) -> str | None:
    """Read a target; None when it is absent."""
    kind, name = split(target)
    match kind:
        case "file":
            return reader.text(name)
        case "irq":
            return reader.text(f"/proc/irq/{name}/smp_affinity_list")
        case "workqueue":
            base = workqueue_path(name)
            asked = reader.text(base + "_requested")
            return asked if asked is not None else reader.text(base)
        case "cgroup":
            return _get_cgroup(reader, name)
        case "cpuset":
            return reader.text(f"/proc/{name}/cpuset")
        case "task":
            return status_field(reader, f"/proc/{name}/status", "Cpus_allowed_list")
        case "process":
            fields = stat_fields(reader.text(f"/proc/{name}/stat"))
            return None if not fields else "stopped" if fields[0] == "T" else "running"
        case _ if kind in KINDS:
            return KINDS[kind].get(reader, name)
    raise ValueError(f"unknown target {target}")


def put(host: Host, target: str, value: str | None) -> None:
    """Write a target. Raises OSError with the kernel's errno."""
    kind, name = split(target)
    if kind in KINDS:
        KINDS[kind].put(host, name, value)
        return
    match kind, value:
        case "cgroup", _:
            _put_cgroup(host, name, value)
        case _, None:
            raise OSError(errno.EINVAL, f"{target} cannot be made absent")
        case "file", str():
            host.write(name, value)
        case "irq", str():
            host.write(f"/proc/irq/{name}/smp_affinity_list", value)
        case "workqueue", str():
            host.write(workqueue_path(name), value)
        case "cpuset", str():
            host.write(f"{cgroup_mount(host)[1]}{value.rstrip('/')}/tasks", name)
        case "task", str():
            host.set_affinity(int(name), value)
        case "process", str():
            host.signal(int(name), "SIGSTOP" if value == "stopped" else "SIGCONT")
        case _:
            raise ValueError(f"unknown target {target}")


def together(host: Host, writes: Sequence[tuple[str, str | None]]) -> None:
    """Write several targets of one kind that can (see Kind.together). Raises OSError with some of them written."""
    write = KINDS[split(writes[0][0])[0]].together
    assert write is not None
    write(host, [(split(target)[1], value) for target, value in writes])


def joins(target: str) -> str:
    """The kind of a target that can be written together with others of it; "" when each is written alone."""
    kind = target.partition(":")[0]
    return kind if kind in KINDS and KINDS[kind].together else ""


def identity(reader: Reader, target: str) -> str | None:
    """What must still be the same for a recorded value to belong to this target (numbers are reused), or None."""
    kind, name = split(target)
    if kind in ("task", "process", "cpuset"):
        fields = stat_fields(reader.text(f"/proc/{name}/stat"))
        return fields[19] if len(fields) > 19 else None  # starttime, proc_pid_stat(5) field 22
    if kind == "irq":
        base = f"/sys/kernel/irq/{name}/"
        parts = [reader.text(base + part) for part in ("chip_name", "hwirq", "actions")]
        # the number of the folder is another one when the driver lets the interrupt go and asks for it again
        return " ".join(p or "-" for p in parts) + f"{_MADE}{reader.inode(base)}"
    return KINDS[kind].identity(reader, name) if kind in KINDS else None


def same_thing(identity: str | None, recorded: str | None) -> bool:
    """Whether two identities are of the same thing, though it may have been made anew since."""
    return (identity or "").partition(_MADE)[0] == (recorded or "").partition(_MADE)[0]


def now(reader: Reader, target: str, recorded: str | None) -> str:
    """What a target is called by now whose identity was recorded: interfaces can be renamed."""
    kind, name = split(target)
    if kind not in KINDS or recorded is None:
        return target
    return f"{kind}:{KINDS[kind].now(reader, name, recorded)}"


def ends(target: str) -> bool:
    """Whether an absent target simply ended: tasks do, and nothing is left to write."""
    kind = target.partition(":")[0]
    return kind in ("task", "process", "cpuset") or (kind in KINDS and KINDS[kind].ends)


def workqueue_path(name: str) -> str:
    """The file that sets a workqueue's mask ("global": of all unbound ones)."""
    middle = "" if name == "global" else f"{name}/"
    return f"/sys/devices/virtual/workqueue/{middle}cpumask"


def _get_cgroup(reader: Reader, name: str) -> str | None:
    mount = cgroup_mount(reader)[1]
    parent, _, leaf = name.rpartition("/")
    if leaf.startswith("+"):
        enabled = reader.text(f"{mount}{parent}/cgroup.subtree_control")
        return None if enabled is None else "on" if leaf[1:] in enabled.split() else "off"
    if "." in leaf:
        return reader.text(mount + name)
    return "present" if reader.exists(mount + name) else None


def _put_cgroup(host: Host, name: str, value: str | None) -> None:
    mount = cgroup_mount(host)[1]
    parent, _, leaf = name.rpartition("/")
    if leaf.startswith("+"):
        host.write(f"{mount}{parent}/cgroup.subtree_control", ("+" if value == "on" else "-") + leaf[1:])
    elif "." not in leaf:
        _make_or_remove(host, mount + name, value)
    elif value is not None:
        host.write(mount + name, value)
    elif leaf == "cpuset.cpus.partition" and host.exists(mount + name):
        host.write(mount + name, "member")  # a partition has to be given up before its cgroup can go


def _make_or_remove(host: Host, path: str, value: str | None) -> None:
    if value == "present":
        host.mkdir(path)
        return
    v2 = host.exists(path + "/cgroup.procs") and host.exists(path + "/cgroup.controllers")
    members = "cgroup.procs" if v2 else "tasks"
    outside = path.rpartition("/")[0] + "/" + members
    for _ in range(20):  # a task may fork while it is moved
        tasks = (host.text(f"{path}/{members}") or "").split()
        for task in tasks:
            try:
                host.write(outside, task)
            except ProcessLookupError:
                continue
        if not tasks:
            break
    host.rmdir(path)
