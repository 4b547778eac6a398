"""Select the CPUs to isolate: check the requested CPUs, or choose CPUs automatically and give the reason."""

from __future__ import annotations

from typing import NamedTuple

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import Refused, UsageError
from quiet.machine import sharing
from quiet.machine.facts import CPU, Facts

# values of smt/control if SMT cannot be disabled or is already off (ABI sysfs-devices-system-cpu)
_NOT_OFF = (None, "off", "forceoff", "notsupported", "notimplemented")


class CpuPartition(NamedTuple):
    """Disjoint sets: `isolated` for the measured work, `offline` (SMT siblings that go offline), and `housekeeping`.

    `why`: the reason for the choice, as text.
    """

    isolated: CpuSet
    housekeeping: CpuSet
    offline: CpuSet
    why: str

    @property
    def away(self) -> CpuSet:
        """The CPUs that tasks and interrupts of other work must leave: isolated or offline."""
        return self.isolated | self.offline


def choose(facts: Facts, requested: str, smt: str, max_cores: int, source: str, rest: str = "auto") -> CpuPartition:
    """Select the CPUs.

    `requested`: "auto" or a CPU list; `smt`: the choice of the knob `smt`; `source`: the option or key that contains
    the request; `max_cores`: the most cores that "auto" selects, unless CPUs were isolated at boot; `rest`: the
    housekeeping CPUs, "auto" for all others. Raises UsageError for a bad request, Refused if no CPU can be isolated.
    """
    reserved = frozenset() if rest == "auto" else _checked(facts, rest, "cpus.housekeeping")
    leaving = _leaving(facts) if smt == "off" else frozenset()
    if requested == "auto":
        isolated, why = _automatic(facts, max_cores, reserved, leaving)
    else:
        isolated, why = _checked(facts, requested, source), f"as requested by {source}"
    if both := isolated & reserved:
        raise UsageError(f"{source} and cpus.housekeeping both list CPU {cpulist.format(both)}; remove it from one")
    whole = isolated
    isolated, offline = _without_siblings(facts, isolated, smt, leaving, reserved)
    housekeeping = (reserved or facts.online - isolated) - offline
    if smt == "siblings" and not housekeeping and facts.online - whole:
        isolated, offline, housekeeping = whole, frozenset(), reserved or facts.online - whole
        why += "; their sibling threads stay online, since they are the only housekeeping CPUs"
    if not housekeeping:
        raise Refused(
            f"isolating {cpulist.format(whole)} would leave no housekeeping CPU among "
            f"{cpulist.format(facts.online)}; list fewer CPUs with --cpus"
        )
    if offline:
        why += f"; sibling threads {cpulist.format(offline)} go offline"
    return CpuPartition(isolated, housekeeping, offline, why)


def parse_requested(requested: str, source: str) -> CpuSet:
    """Parse a requested CPU list. Raises UsageError, which names `source`, the option or key of the list."""
    try:
        return cpulist.parse(requested)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from None


def _checked(facts: Facts, requested: str, source: str) -> CpuSet:
    cpus = parse_requested(requested, source)
    if not cpus:
        raise UsageError(f"{source}: no CPU given; list at least one of {cpulist.format(facts.online)}")
    if unknown := cpus - facts.possible:
        raise UsageError(
            f"{source}: no such CPU: {cpulist.format(unknown)}; online CPUs: {cpulist.format(facts.online)}"
        )
    if off := cpus - facts.online:
        raise UsageError(f"{source}: CPU {cpulist.format(off)} is offline; online CPUs: {cpulist.format(facts.online)}")
    return cpus


def _leaving(facts: Facts) -> CpuSet:
    """The CPUs that go offline when SMT is disabled: all but the first thread of each core. Empty if SMT is already off
    or cannot be disabled.
    """
    return frozenset() if facts.reader.text(f"{CPU}/smt/control") in _NOT_OFF else facts.secondary


def _automatic(facts: Facts, max_cores: int, reserved: CpuSet, leaving: CpuSet) -> tuple[CpuSet, str]:
    chosen_at_boot, parameter = facts.boot_chosen
    boot = chosen_at_boot - reserved - leaving
    if boot and facts.online - boot:
        return boot, f"isolated at boot ({parameter})"
    first = min(facts.online)
    cores = [core for core in facts.cores if first not in core and not core & reserved and not core <= leaving]
    if not cores:
        raise Refused(
            f"nothing can be isolated: CPUs {cpulist.format(facts.online)} have no whole core besides the core of CPU "
            f"{first}{' and the cores of cpus.housekeeping' if reserved else ''}"
        )
    fast = [core for core in cores if not core & facts.slow_cpus] or cores
    node, local = _best_node(facts, fast)
    count = min(max_cores, len(local), max(1, len(facts.cores) // 2))
    migrators = sharing.timer_migrators(facts)
    calm = [core for core in local if not core & migrators]
    levels = sharing.shared(facts, frozenset().union(*local))
    chosen = sharing.whole_first(calm if len(calm) >= count else local, count, levels)
    isolated = frozenset[int]().union(*chosen)
    place = f"on NUMA node {node}" if len(facts.nodes) > 1 else "on the only NUMA node"
    kind = " of the faster kind" if facts.slow_cpus and fast is not cores else ""
    noun = "core" if count == 1 else "cores"
    why = [f"{count} whole physical {noun}{kind} {place}, away from CPU {first}", *sharing.beside(isolated, levels)]
    if pulling := isolated & migrators:
        why.append(f"CPU {cpulist.format(pulling)} may run other CPUs' timers without nohz_full= (Linux 6.9 to 6.18)")
    far = {other: names for other, names in sharing.device_nodes(facts).items() if other != node}
    if len(facts.nodes) > 1:
        why += [f"{', '.join(names)} on node {other}" for other, names in sorted(far.items())]
    return isolated, "; ".join(why)


def _best_node(facts: Facts, cores: list[CpuSet]) -> tuple[int, list[CpuSet]]:
    first = min(facts.online)
    by_node = {node: [core for core in cores if core <= cpus] for node, cpus in facts.nodes.items()}
    by_node = {node: local for node, local in by_node.items() if local}
    if not by_node:  # the nodes in a recording may lack some cores
        return 0, cores
    # prefer a node without the first CPU, then the node with the most cores, then the last one
    node = max(by_node, key=lambda n: (first not in facts.nodes[n], len(by_node[n]), n))
    return node, by_node[node]


def _without_siblings(
    facts: Facts, isolated: CpuSet, smt: str, leaving: CpuSet, reserved: CpuSet
) -> tuple[CpuSet, CpuSet]:
    """The CPUs that stay isolated, and the CPUs to take offline.

    With smt "siblings", each isolated core keeps one isolated thread; threads `reserved` for housekeeping stay online,
    and the others go offline if the kernel permits it. With "off", the CPUs `leaving` go offline. With any other
    choice, no CPU goes offline. Raises UsageError if no isolated CPU would stay online.
    """
    if smt == "off":
        if not isolated - leaving:
            lost = cpulist.format(isolated)
            raise UsageError(f'CPU {lost} goes offline with smt = "off"; list the first thread of its core')
        return isolated - leaving, leaving
    if smt != "siblings":
        return isolated, frozenset()
    keep: set[int] = set()
    offline: set[int] = set()
    for cpu in sorted(isolated):
        if cpu in offline:
            continue
        keep.add(cpu)
        others = (facts.siblings(cpu) & facts.online) - keep - reserved
        offline |= {other for other in others if facts.reader.exists(f"{CPU}/cpu{other}/online")}
    return frozenset(keep), frozenset(offline)
