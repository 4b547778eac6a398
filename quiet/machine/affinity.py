"""Move a process to its CPUs: into the isolated partition, or out of it. For `quiet run` and for cbench."""

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
    """The CPUs among these that place() can use, although this process's affinity may be narrower (isolcpus=)."""
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
    """Move a process (0: the caller) to the cgroup that owns a CPU, and pin it to that CPU.

    Raises UsageError for a CPU that is not online, Refused when it may not be used.
    """
    online = Facts(Reader()).online
    if cpu not in online:
        raise UsageError(f"CPU {cpu} is not online; online CPUs: {cpulist.format(online)}")
    join(frozenset({cpu}), pid)


def join(cpus: CpuSet, pid: int = 0) -> None:
    """Move a process to the cgroup that owns these CPUs, and let it run on them only. Raises Refused."""
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
            _enter(host, mount, pid)  # its own cgroup excludes these CPUs, as systemd's slices do under a profile
            os.sched_setaffinity(pid, cpus)
    except PermissionError:
        raise Refused(f"CPU {names} belongs to another cgroup; use it with sudo, or through `quiet run`") from None
    except OSError as error:
        raise Refused(f"CPU {names} cannot be used from this cgroup: {error.strerror}") from None


def _within(host: Host, version: int, pid: int) -> bool:
    """Whether a process is in the partition's cgroup, or in one below it, such as a run's own."""
    own = cgroup.group(host)
    for line in (host.text(f"/proc/{pid or 'self'}/cgroup") or "").splitlines():
        _, controllers, name = line.split(":", 2)
        if not controllers if version == 2 else "cpuset" in controllers.split(","):
            return name == own or name.startswith(f"{own}/")
    return False


def _leaf(host: Host, group: str) -> str:
    """The cgroup for tasks: below a slice, because a cgroup with tasks cannot contain scopes and containers."""
    if not group.endswith(cgroup.SLICE):
        return group
    with contextlib.suppress(FileExistsError):
        host.mkdir(f"{group}/joined")
    return f"{group}/joined"


def _enter(host: Host, group: str, pid: int) -> None:
    # 0 would mean the writer; the PID also works for a child
    host.write(f"{group}/cgroup.procs", str(pid or os.getpid()))


def forgo_huge_pages() -> None:
    """Keep khugepaged away from this process and its later children, if the kernel supports this (PR_SET_THP_DISABLE).

    When khugepaged collapses pages of any process into a huge one, it interrupts every CPU, isolated ones too.
    """
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_THP_DISABLE, 1, 0, 0, 0)
