"""Read facts about a host; each property is read once, on first use.

Sources: kernel documents ABI/stable/sysfs-devices-system-cpu, admin-guide/cputopology, admin-guide/cgroup-v2.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import UsageError
from quiet.host.proc import FLAGS, cpuset_mount, stat_fields, status_field
from quiet.host.reader import Reader

CPU = "/sys/devices/system/cpu"
PF_KTHREAD = 0x00200000  # include/linux/sched.h
PF_NO_SETAFFINITY = 0x04000000


ENDED = ("Z (zombie)", "X (dead)")  # such a thread never runs again, and stays listed until its parent reaps it


class Task(NamedTuple):
    """One thread. `cpus`: its affinity, as a CPU list; `kernel`: whether it is a kernel thread; `bound`: whether the
    kernel forbids changing its affinity.
    """

    tid: int
    comm: str
    cpus: str
    kernel: bool
    bound: bool


def _read(parse: Callable[[str], CpuSet], text: str, path: str) -> CpuSet:
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from None


class Facts:
    """Facts about a host, read through a Reader."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def _list(self, path: str) -> CpuSet | None:
        text = self.reader.text(path)
        return None if text is None else _read(cpulist.parse, text, path)

    @cached_property
    def numbered_cpus(self) -> CpuSet:
        """The CPUs that have a directory in sysfs, including offline CPUs."""
        return frozenset(self.reader.numbered(CPU, "cpu"))

    @cached_property
    def online(self) -> CpuSet:
        """The online CPUs."""
        listed = self._list(f"{CPU}/online")
        if listed:
            return listed
        # without the list (some kernels and recordings), a CPU without the file `online` is always online
        running = (c for c in self.numbered_cpus if self.reader.text(f"{CPU}/cpu{c}/online") != "0")
        return frozenset(running) or frozenset({0})

    @cached_property
    def possible(self) -> CpuSet:
        """The CPUs that this kernel could ever bring online."""
        return (self._list(f"{CPU}/possible") or self.numbered_cpus) | self.online

    @cached_property
    def present(self) -> CpuSet:
        """The CPUs that are plugged in, online or offline."""
        return (self._list(f"{CPU}/present") or self.numbered_cpus) | self.online

    @cached_property
    def boot_isolated(self) -> CpuSet:
        """CPUs removed from the scheduler's domains at boot (isolcpus=domain)."""
        return (self._list(f"{CPU}/isolated") or frozenset()) & self.online

    @cached_property
    def nohz_full(self) -> CpuSet:
        """CPUs that may run without the scheduler's tick (nohz_full=)."""
        return self._list(f"{CPU}/nohz_full") or frozenset()

    @cached_property
    def boot_chosen(self) -> tuple[CpuSet, str]:
        """The CPUs that the kernel command line keeps free of work, and the parameter; (empty, "") if there are none.

        isolcpus= with the flag `domain`, the most deliberate choice, comes first, then isolcpus= with other flags, then
        nohz_full=.
        """
        if self.boot_isolated:
            return self.boot_isolated, "isolcpus"
        listed: CpuSet = frozenset()
        for word in self.command_line.split():
            name, _, value = word.partition("=")
            for part in value.split(",") if name == "isolcpus" else ():
                with contextlib.suppress(UsageError):  # a flag such as managed_irq
                    listed |= cpulist.parse(part.replace("N", str(max(self.possible))))
        if listed & self.online:
            return listed & self.online, "isolcpus"
        tickless = self.nohz_full & self.online
        return tickless, "nohz_full" if tickless else ""

    @cached_property
    def command_line(self) -> str:
        """The running kernel's command line."""
        return self.reader.text("/proc/cmdline") or ""

    @cached_property
    def release(self) -> tuple[int, int]:
        """The kernel's version, such as (6, 12); (0, 0) if it is unknown."""
        found = re.match(r"(\d+)\.(\d+)", self.reader.text("/proc/sys/kernel/osrelease") or "")
        return (int(found[1]), int(found[2])) if found else (0, 0)

    @cached_property
    def cores(self) -> tuple[CpuSet, ...]:
        """The online CPUs grouped by physical core; the cores are in the order of their lowest CPU."""
        seen: set[int] = set()
        groups = []
        for cpu in sorted(self.online):
            if cpu not in seen:
                group = (self.siblings(cpu) & self.online) | {cpu}
                seen |= group
                groups.append(frozenset(group))
        return tuple(groups)

    @cached_property
    def secondary(self) -> CpuSet:
        """The online CPUs that are not the first thread of their core; they go offline when SMT is disabled."""
        return frozenset(cpu for core in self.cores for cpu in core if cpu != min(self.siblings(cpu)))

    def siblings(self, cpu: int) -> CpuSet:
        """The hardware threads of a CPU's core, including that CPU; only that CPU if the kernel reports none."""
        base = f"{CPU}/cpu{cpu}/topology/"
        for name, read in (
            ("core_cpus_list", cpulist.parse),
            ("thread_siblings_list", cpulist.parse),
            ("core_cpus", cpulist.parse_mask),
            ("thread_siblings", cpulist.parse_mask),
        ):
            text = self.reader.text(base + name)
            if text:
                return _read(read, text, base + name) | {cpu}
        return frozenset({cpu})

    @cached_property
    def nodes(self) -> dict[int, CpuSet]:
        """Online CPUs by NUMA node; a single node 0 if the kernel has none."""
        by_node = {}
        for node in self.reader.numbered("/sys/devices/system/node", "node"):
            base = f"/sys/devices/system/node/node{node}/"
            cpus = self._list(base + "cpulist")
            if cpus is None:
                cpus = _read(cpulist.parse_mask, self.reader.text(base + "cpumap") or "0", base + "cpumap")
            if cpus & self.online:
                by_node[node] = cpus & self.online
        return by_node or {0: self.online}

    @cached_property
    def memory_nodes(self) -> CpuSet:
        """The NUMA nodes that have memory. If the kernel does not list them: the nodes with online CPUs, or node 0."""
        return self._list("/sys/devices/system/node/has_memory") or frozenset(self.nodes)

    @cached_property
    def slow_cpus(self) -> CpuSet:
        """The CPUs of the smaller core types of a hybrid machine; empty if all cores have one type."""
        # efficient cores, and low-power cores on some processors
        listed = (self._list(f"/sys/devices/cpu_{kind}/cpus") for kind in ("atom", "lowpower"))
        small = frozenset().union(*(cpus for cpus in listed if cpus)) & self.online
        if small and small < self.online:
            return small
        for name in ("cpu_capacity", "cpufreq/cpuinfo_max_freq"):
            texts = {c: self.reader.text(f"{CPU}/cpu{c}/{name}") or "" for c in self.online}
            sizes = {c: int(text) for c, text in texts.items() if text.isdecimal()}
            if len(sizes) == len(self.online):
                top = max(sizes.values())
                # cores of one type differ by a few percent ("favored" cores), types by far more
                return frozenset(c for c, size in sizes.items() if size < 0.85 * top)
        return frozenset()

    @cached_property
    def irqs(self) -> list[int]:
        """The interrupt numbers that have a descriptor."""
        return self.reader.numbered("/proc/irq")

    @cached_property
    def interfaces(self) -> dict[str, bool]:
        """The network interfaces of this process's namespace; the value is True if the interface has a device."""
        base, exists = "/sys/class/net", self.reader.exists
        names = (name for name in self.reader.names(base) if exists(f"{base}/{name}/ifindex"))
        return {name: exists(f"{base}/{name}/device") for name in names}

    @cached_property
    def irq_cpus(self) -> dict[int, str]:
        """The CPUs that may receive an interrupt, as a list in the kernel's notation, by the interrupt's number."""
        read = ((number, self.reader.text(f"/proc/irq/{number}/smp_affinity_list")) for number in self.irqs)
        return {number: text for number, text in read if text is not None}

    @cached_property
    def policies(self) -> dict[int, CpuSet]:
        """The CPUs of each cpufreq policy, by the policy's number."""
        by_policy = {}
        for number in self.reader.numbered(f"{CPU}/cpufreq", "policy"):
            path = f"{CPU}/cpufreq/policy{number}/affected_cpus"
            text = (self.reader.text(path) or "").replace(" ", ",")
            by_policy[number] = _read(cpulist.parse, text, path) or frozenset({number})
        return by_policy

    @cached_property
    def cgroup(self) -> tuple[int, str]:
        """The cgroup version and mount point of the hierarchy with the cpuset controller; (0, "") if there is none."""
        return cpuset_mount(self.reader)

    @cached_property
    def tasks(self) -> list[Task]:
        """Every thread on the host (a snapshot; threads come and go)."""
        threads = []
        for pid in self.reader.numbered("/proc"):
            tids = self.reader.numbered(f"/proc/{pid}/task") or [pid]
            threads += [task for tid in tids if (task := self.task(tid, pid))]
        return threads

    @cached_property
    def movable_tasks(self) -> list[Task]:
        """The threads that the kernel does not bind to a CPU."""
        return [task for task in self.tasks if not task.bound]

    def task(self, tid: int, pid: int | None = None) -> Task | None:
        """The current state of a thread; None if it has ended. `pid`: its process, if known."""
        base = f"/proc/{pid or tid}/task/{tid}"
        text = self.reader.text(f"{base}/status")
        cpus = status_field(text, "Cpus_allowed_list")
        if text is None or cpus is None or status_field(text, "State") in ENDED:
            return None
        comm = text[5:].partition("\n")[0].strip()
        fields = stat_fields(self.reader.text(f"{base}/stat"))
        flags = int(fields[FLAGS]) if len(fields) > FLAGS else 0
        return Task(tid, comm, cpus, bool(flags & PF_KTHREAD), bool(flags & PF_NO_SETAFFINITY))
