"""Find a CPU's place in the topology: its caches, and the near and distant CPUs on which a load can run.

Sources: kernel documents ABI/testing/sysfs-devices-system-cpu (cache/index*) and admin-guide/cputopology.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quiet import CPU_FOLDER, CpuSet, Facts, Reader, UsageError, parse_cpu_mask, parse_cpus

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
SIBLING, CACHE, FAR, NODE = "sibling", "cache", "far", "node"
PLACES = {SIBLING: "a sibling thread", CACHE: "a core with the same cache", FAR: "a far core", NODE: "another node"}


@dataclass(frozen=True, slots=True)
class Cache:
    """A data or unified cache as one CPU sees it; `size`: bytes, None if the host does not report it."""

    level: int
    kind: str
    size: int | None
    cpus: CpuSet

    @property
    def name(self) -> str:
        return f"L{self.level}{'d' if self.kind == 'Data' else ''}"


@dataclass(frozen=True, slots=True)
class Place:
    """A place for a load, one of PLACES; `cpu`: None if the host has no such place, with the reason in `reason`."""

    name: str
    cpu: int | None
    reason: str = ""

    @property
    def title(self) -> str:
        return PLACES[self.name]


def caches(reader: Reader, cpu: int) -> tuple[Cache, ...]:
    """The caches that hold this CPU's data, the nearest first; empty if the host shows none. Raises UsageError, with
    the file, for a malformed list of CPUs.
    """
    shared = []
    for index in reader.numbered(f"{CPU_FOLDER}/cpu{cpu}/cache", "index"):
        base = f"{CPU_FOLDER}/cpu{cpu}/cache/index{index}/"
        level, kind = reader.text(base + "level") or "", reader.text(base + "type") or ""
        if level.isdecimal() and kind in ("Data", "Unified"):
            shared.append(Cache(int(level), kind, _bytes(reader.text(base + "size")), _shared(reader, base) | {cpu}))
    return tuple(sorted(shared, key=lambda cache: cache.level))


def _bytes(text: str | None) -> int | None:
    """The size in bytes that a text such as "512K" denotes; None if it denotes none."""
    number, unit = (text[:-1], UNITS.get(text[-1])) if text and not text[-1].isdecimal() else (text or "", 1)
    return int(number) * unit if number.isdecimal() and unit else None


def _shared(reader: Reader, base: str) -> CpuSet:
    for name, read in (("shared_cpu_list", parse_cpus), ("shared_cpu_map", parse_cpu_mask)):
        text = reader.text(base + name)
        if text:
            try:
                return read(text)
            except UsageError as error:
                raise UsageError(f"{base}{name}: {error}") from None
    return frozenset()


def places(facts: Facts, cpu: int, preferred: Iterable[int] = ()) -> tuple[Place, ...]:
    """One CPU for each place relative to `cpu`, one of the `preferred` CPUs if possible."""
    node = next((cpus for cpus in facts.nodes.values() if cpu in cpus), facts.online)
    core = facts.siblings(cpu) & facts.online
    last, name = _nearby(facts, cpu)
    others = facts.online - node - last or facts.online - node
    unreported = "this host does not report which CPUs share a cache"
    wanted = (
        (SIBLING, core - {cpu}, "no SMT sibling is online"),
        (CACHE, (last & node) - core or last - core, f"no other core shares the {name}" if name else unreported),
        (
            FAR,
            node - last - core if name else frozenset(),
            f"all cores of the node share the {name}" if name else unreported,
        ),
        (NODE, others, "no other node has online CPUs"),
    )
    near = frozenset(preferred)
    return tuple(
        Place(place, _one(cpus, near, facts)) if cpus else Place(place, None, reason) for place, cpus, reason in wanted
    )


def _nearby(facts: Facts, cpu: int) -> tuple[CpuSet, str]:
    """The CPUs that share the last-level cache or the cluster with this one, and the name of the shared resource, "" if
    there is none.
    """
    if known := caches(facts.reader, cpu):
        return known[-1].cpus & facts.online, f"{known[-1].name} cache"
    text = facts.reader.text(f"{CPU_FOLDER}/cpu{cpu}/topology/cluster_cpus_list")
    cluster = parse_cpus(text) & facts.online if text else frozenset()
    return (cluster, "cluster") if cluster - facts.siblings(cpu) else (frozenset(), "")


def _one(cpus: CpuSet, preferred: CpuSet, facts: Facts) -> int:
    """The lowest of `cpus`; `preferred` ones take precedence, and the host's first CPU, which handles most interrupts,
    is avoided.
    """
    first = min(facts.online)
    return min(cpus, key=lambda cpu: (cpu not in preferred, cpu == first, cpu))
