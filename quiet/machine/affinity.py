"""Move a process into or out of the isolated partition, and pin it. Used by `quiet run` and cbench."""

from __future__ import annotations

import contextlib
import errno
import os

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import Refused, UsageError
from quiet.host.host import Host
from quiet.host.proc import cpuset_mount
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.targets import cgroup

_PR_SET_THP_DISABLE = 41  # prctl(2)


def reachable(cpus: CpuSet) -> CpuSet:
    """The CPUs in `cpus` that place() can use, even if this process's affinity excludes them (isolcpus=)."""
    before = os.sched_getaffinity(0)
    usable = set(cpus & before)
    for cpu in cpus - before:
        try:
            os.sched_setaffinity(0, {cpu})
        except OSError:
            if os.geteuid() != 0:
                continue
        usable.add(cpu)
    os.sched_setaffinity(0, before)
    return frozenset(usable)


def place(cpu: int, pid: int = 0) -> None:
    """Move a process (0: the caller) to the cgroup that owns a CPU, and pin the process to that CPU.

    Raises UsageError if the CPU is not online, Refused if this process may not use it.
    """
    online = Facts(Reader()).online
    if cpu not in online:
        raise UsageError(f"CPU {cpu} is not online; online CPUs: {cpulist.format(online)}")
    join(frozenset({cpu}), pid)


def join(cpus: CpuSet, pid: int = 0) -> None:
    """Move a process to the cgroup that owns these CPUs, and restrict the process to them. Raises Refused."""
    host = Host()
    version, mount = cpuset_mount(host)
    group = f"{mount}{cgroup.group(host)}"
    names = cpulist.format(cpus)
    there = bool(version) and host.exists(group)
    inside = there and _within(host, version, pid)
    wanted = there and cpus <= cpulist.parse(host.text(f"{group}/cpuset.cpus") or "")
    try:
        if wanted != inside:
            _enter(host, _leaf(host, group) if wanted else mount, pid)
        try:
            os.sched_setaffinity(pid, cpus)
        except OSError as error:
            if error.errno != errno.EINVAL or version != 2 or wanted:
                raise
            _enter(host, mount, pid)  # its cgroup excludes these CPUs, as systemd's slices do under a profile
            os.sched_setaffinity(pid, cpus)
    except PermissionError:
        raise Refused(f"CPU {names} belongs to another cgroup; run this with sudo, or through `quiet run`") from None
    except OSError as error:
        raise Refused(f"CPU {names} cannot be used from this cgroup: {error.strerror}") from None


def _within(host: Host, version: int, pid: int) -> bool:
    """Whether a process is in the partition's cgroup or in a descendant, such as the cgroup of a run."""
    own = cgroup.group(host)
    for line in (host.text(f"/proc/{pid or 'self'}/cgroup") or "").splitlines():
        _, controllers, name = line.split(":", 2)
        if not controllers if version == 2 else "cpuset" in controllers.split(","):
            return name == own or name.startswith(f"{own}/")
    return False


def _leaf(host: Host, group: str) -> str:
    """The cgroup for tasks: a child of the slice, because a cgroup with tasks cannot contain scopes and containers."""
    if not group.endswith(cgroup.SLICE):
        return group
    with contextlib.suppress(FileExistsError):
        host.mkdir(f"{group}/joined")
    return f"{group}/joined"


def _enter(host: Host, group: str, pid: int) -> None:
    # 0 would mean the writer; a PID also works for a child
    host.write(f"{group}/cgroup.procs", str(pid or os.getpid()))


def forgo_huge_pages() -> None:
    """Exclude this process and its later children from khugepaged, if the kernel supports this (PR_SET_THP_DISABLE).

    When khugepaged collapses pages into a huge page, it interrupts every CPU, isolated ones too.
    """
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
