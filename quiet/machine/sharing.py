"""Find resources that cores share: caches, clusters, and groups of CPUs that expire each other's timers.

Sources: ABI/testing/sysfs-devices-system-cpu (cache/index*/), admin-guide/cputopology.rst (cluster_cpus_list),
kernel/time/timer_migration.c (TMIGR_CHILDREN_PER_GROUP).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.machine.facts import CPU, Facts

_GROUP = 8  # CPUs of a node that share one migrator
_PULLED = ((6, 9), (6, 18))  # first and last release in which a busy CPU expires the timers of idle CPUs


class Sharing(NamedTuple):
    """A shared resource. `domains` maps each CPU to the online CPUs that share it."""

    name: str
    domains: dict[int, CpuSet]


def shared(facts: Facts, cpus: CpuSet) -> list[Sharing]:
    """The resources that these CPUs share, widest first; empty if the kernel does not report them."""
    found = [
        Sharing("an L3 cache", _domains(facts, cpus, _cache(facts, cpus, "3"))),
        Sharing("a cluster", _domains(facts, cpus, "topology/cluster_cpus_list")),
        Sharing("an L2 cache", _domains(facts, cpus, _cache(facts, cpus, "2"))),
    ]
    return [each for each in found if each.domains]


def _cache(facts: Facts, cpus: CpuSet, level: str) -> str:
    """The file that lists the CPUs of a cache, "" if there is none. All CPUs number their caches in the same way."""
    base = f"{CPU}/cpu{max(cpus)}/cache"
    for number in facts.reader.numbered(base, "index"):
        if facts.reader.text(f"{base}/index{number}/level") == level:
            return f"cache/index{number}/shared_cpu_list"
    return ""


def _domains(facts: Facts, cpus: CpuSet, file: str) -> dict[int, CpuSet]:
    """The domain of each CPU; each domain's file is read once."""
    domains: dict[int, CpuSet] = {}
    for cpu in sorted(cpus) if file else ():
        if cpu not in domains:
            text = facts.reader.text(f"{CPU}/cpu{cpu}/{file}")
            if not text:
                return {}
            together = (cpulist.parse(text) | {cpu}) & facts.online
            domains |= dict.fromkeys(together, together)
    return domains


def whole_first(cores: Iterable[CpuSet], count: int, levels: Sequence[Sharing]) -> list[CpuSet]:
    """Pick `count` cores from as few domains as possible.

    Complete domains with no more cores than needed come first, the largest one first; then other complete domains.
    Among equals, the domain with the highest CPU numbers comes first.
    """
    cores = sorted(cores, key=min)
    if not levels:
        return cores[-count:]
    groups: dict[CpuSet, list[CpuSet]] = {}
    for core in cores:
        groups.setdefault(levels[0].domains.get(min(core), core), []).append(core)
    chosen: list[CpuSet] = []
    while groups and len(chosen) < count:
        best = max(groups, key=_order(groups, count - len(chosen)))
        chosen += whole_first(groups.pop(best), count - len(chosen), levels[1:])
    return chosen


def _order(groups: dict[CpuSet, list[CpuSet]], room: int) -> Callable[[CpuSet], tuple[bool, bool, int, int]]:
    def order(domain: CpuSet) -> tuple[bool, bool, int, int]:
        members = groups[domain]
        whole = domain <= frozenset().union(*members)
        fits = whole and len(members) <= room
        return fits, whole, len(members) if fits else 0, min(domain)

    return order


def beside(chosen: CpuSet, levels: Sequence[Sharing]) -> list[str]:
    """The resources that the selected CPUs share with other CPUs, as text."""
    words: list[str] = []
    listed: CpuSet = frozenset()
    for level in reversed(levels):  # CPUs that share the nearer cache also share the wider one
        together = frozenset().union(*(level.domains.get(cpu, frozenset()) for cpu in chosen))
        if others := together - chosen - listed:
            words.append(f"they share {level.name} with CPU {cpulist.format(others)}")
            listed |= others
    return words


def timer_migrators(facts: Facts) -> CpuSet:
    """The CPUs that are most likely to expire the timers of their group; empty if isolated CPUs expire none.

    CPUs of nohz_full= expire none, and kernels outside the releases in _PULLED exclude isolated CPUs.
    """
    if not _PULLED[0] <= facts.release <= _PULLED[1]:
        return frozenset()
    rows = (sorted(cpus) for cpus in facts.nodes.values())
    return frozenset(row[at] for row in rows for at in range(0, len(row), _GROUP)) - facts.nohz_full


def device_nodes(facts: Facts) -> dict[int, list[str]]:
    """The network interfaces and NVMe drives of each NUMA node, by the node's number."""
    nets = [f"/sys/class/net/{name}" for name, device in facts.interfaces.items() if device]
    drives = [f"/sys/class/nvme/{name}" for name in facts.reader.names("/sys/class/nvme")]
    by_node: dict[int, list[str]] = {}
    for path in (*nets, *drives):
        node = facts.reader.text(f"{path}/device/numa_node") or ""
        if node.isdecimal():  # -1: the firmware does not report the node
            by_node.setdefault(int(node), []).append(path.rpartition("/")[2])
    return by_node
