"""Define knobs for network devices: number of queues, distribution of packets, their CPUs, interrupt rates.

Sources: networking/scaling.rst, networking/napi.rst, networking/ethtool-netlink.rst, admin-guide/sysctl/net.rst,
ABI/testing/sysfs-class-net-queues. The knob `irq` moves a queue's interrupt to a housekeeping CPU; these knobs set
everything that depends on the interrupt's CPU, and handle interrupts that `irq` cannot move.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from quiet import cpulist
from quiet.knobs.knob import (
    DesiredValue,
    Knob,
    RuleContext,
    RuleResult,
    Skip,
    derived,
    housekeeping_mask,
    moved_away,
    one_file,
)
from quiet.targets import net, registry, value_types

_NONE = "no network interface belongs to a device"
_NO_ANSWER = "the driver does not report this setting"
_DOC = "networking/scaling.rst"
# the driver's name for a receive queue's interrupt: virtio0-input.3, eth0-TxRx-3, eth0-rx-3, mlx5_comp3@pci:...
_QUEUE = re.compile(r"(?:-input\.|-Tx-?Rx-|-rx-|_comp)(\d+)(?=$|@)", re.IGNORECASE)
# A queue's settings, which disappear when there are fewer queues and reappear with defaults.
_OF_QUEUES = ("rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs", "tx_maxrate")
_LIMITS = tuple(f"byte_queue_limits/{name}" for name in ("hold_time", "limit_min", "limit_max"))
_CORE = "/proc/sys/net/core/"
_SYSCTL = "admin-guide/sysctl/net.rst"
# The kernel removes isolcpus= and nohz_full= CPUs from a written mask, and rejects a mask that becomes empty.
_KEPT_FREE = {22: "the kernel removes CPUs of isolcpus= and nohz_full= from this mask, and no other CPU is left in it"}


def devices(context: RuleContext) -> list[str]:
    """The interfaces that belong to a device, and thus cause interrupts."""
    return [name for name, device in context.facts.interfaces.items() if device]


def queues(context: RuleContext, interface: str, sort: str) -> list[str]:
    """The names of an interface's queues of one type: "rx" gives ["rx-0", "rx-1"]."""
    numbers = context.facts.reader.numbered(f"{net.folder(interface)}/queues", f"{sort}-")
    return [f"{sort}-{number}" for number in numbers]


def _interrupts(context: RuleContext, interface: str) -> list[int]:
    return [int(number) for number in (registry.get(context.facts.reader, f"net:{interface}/interrupts") or "").split()]


def stuck(context: RuleContext, interface: str) -> dict[int, int]:
    """The receive queues whose interrupt arrives on an isolated CPU and cannot be moved, with the
    interrupt's number.
    """
    queues_at = {}
    for number in _interrupts(context, interface):
        queue = _QUEUE.search(context.text(f"/sys/kernel/irq/{number}/actions") or "")
        base = f"/proc/irq/{number}/"
        fires = context.text(base + "effective_affinity_list") or context.text(base + "smp_affinity_list") or ""
        movable = context.facts.reader.writable(base + "smp_affinity_list")
        if queue and not movable and cpulist.parse(fires) & context.cpus.away:
            queues_at[int(queue[1])] = number
    return queues_at


def _channels(context: RuleContext) -> RuleResult:
    most = len(context.cpus.housekeeping & context.facts.online)
    for name in devices(context):
        target = f"net:{name}/channels"
        if len(queues(context, name, "rx")) < 2 and len(queues(context, name, "tx")) < 2:
            yield Skip(target, "the device has one queue")
        elif (current := registry.get(context.facts.reader, target)) is None:
            yield Skip(target, _NO_ANSWER)
        else:
            fewer = {sort: min(count, most) for sort, count in net.counts(current).items()}
            yield DesiredValue(target, net.spell(fewer), current=current)
    if not devices(context):
        yield Skip("net:*/channels", _NONE)


def _with_channels(context: RuleContext) -> Iterator[str]:
    """The targets that change with the number of channels: queues come and go, and interrupts are requested again."""
    exists = context.facts.reader.exists
    for name in devices(context):
        yield f"net:{name}/rss"
        yield f"net:{name}/adaptive"
        for queue in queues(context, name, "rx") + queues(context, name, "tx"):
            base = f"queues/{queue}"
            files = (f"{base}/{file}" for file in (*_OF_QUEUES, *_LIMITS))
            yield from (f"net:{name}/{file}" for file in files if exists(f"{net.folder(name)}/{file}"))
        yield from (f"irq:{number}" for number in _interrupts(context, name))


def _rss(context: RuleContext) -> RuleResult:
    reader, most = context.facts.reader, len(context.cpus.housekeeping & context.facts.online)
    for name in devices(context):
        there = stuck(context, name)
        if not there:
            continue
        rules = net.counts(registry.get(reader, f"net:{name}/rules") or "")
        for rule, queue in rules.items():
            if queue in there:
                sends = f"rule {rule} sends its flows to queue {queue}"
                yield Skip(f"net:{name}/rules", f"{sends}: {_isolated(there[queue])}")
        target = f"net:{name}/rss"
        current = registry.get(reader, target)
        free = [n for n in range(len(queues(context, name, "rx"))) if n not in there]
        free = [n for n in free if n < most] or free  # queues above the new number may disappear (net.channels)
        if current is None or not free:
            why = _NO_ANSWER if current is None else "no other queue is left"
            yield Skip(target, f"queue {min(there)}: {_isolated(there[min(there)])}; {why}")
            continue
        table = net.queues(current)
        spread = [free[at % len(free)] for at in range(len(table))] if there.keys() & set(table) else table
        yield DesiredValue(target, net.spell_queues(spread), current=current)


def _isolated(interrupt: int) -> str:
    return f"interrupt {interrupt} arrives on an isolated CPU, and cannot be moved"


def _threaded(context: RuleContext) -> RuleResult:
    for name in devices(context):
        if stuck(context, name):
            yield DesiredValue(f"net:{name}/threaded", "1")


def _adaptive(context: RuleContext) -> RuleResult:
    for name in devices(context):
        target = f"net:{name}/adaptive"
        current = registry.get(context.facts.reader, target)
        wanted = net.spell(dict.fromkeys(net.counts(current or ""), 0))
        yield DesiredValue(target, wanted, current=current, absent=_NO_ANSWER)
    if not devices(context):
        yield Skip("net:*/adaptive", _NONE)


def _defer(context: RuleContext) -> RuleResult:
    for name in devices(context):
        for file, value in (("napi_defer_hard_irqs", "2"), ("gro_flush_timeout", "200000")):
            yield DesiredValue(f"net:{name}/{file}", value)
    if not devices(context):
        yield Skip("net:*/napi_defer_hard_irqs", _NONE)


def _masks(context: RuleContext, sort: str, file: str) -> Iterator[DesiredValue]:
    """Move the masks of all queues off the isolated CPUs, including those of containers' and bridges' interfaces."""
    for name in context.facts.interfaces:
        for queue in queues(context, name, sort):
            # on an interface with one transmit queue, xps_cpus cannot be read
            current = context.text(f"{net.folder(name)}/queues/{queue}/{file}")
            if current and (cpus := cpulist.parse_mask(current)) & context.cpus.away:
                new = cpulist.format_mask(moved_away(context, cpus))
                yield DesiredValue(f"net:{name}/queues/{queue}/{file}", new, current=current)


def _busy_poll(context: RuleContext) -> RuleResult:
    for name in ("busy_poll", "busy_read"):
        yield from one_file(_CORE + name, "0")["rule"](context)


CHANNELS = (
    Knob(
        name="net.channels",
        gain="no interrupts of devices",
        noticed="network links may go down for a moment",
        title="queues of network devices",
        why="queues beyond the number of housekeeping CPUs only add interrupts, or are assigned to isolated CPUs",
        doc=f"{_DOC} (RSS), networking/ethtool-netlink.rst (CHANNELS_SET)",
        rule=_channels,
        path="ethtool -L INTERFACE (channels)",
        targets="net:INTERFACE/channels of devices with several queues: at most one of each type per housekeeping CPU",
        recheck_on="device",
        after=("smt", "irq.default"),
        refusals={
            16: "the driver cannot change the number of queues while the interface is up",
            95: "the driver cannot change the number of queues",
        },
        verdicts={
            "indirection table": "a manually set table (ethtool -X) uses queues that would be removed",
            "ntuple filter": "a manually set rule (ethtool -N) uses a queue that would be removed",
            "AF_XDP": "a program (AF_XDP) uses a queue that would be removed",
        },
        entangled=_with_channels,
        moves="the device's interrupts, its RSS table, its adaptive rates, and RPS and XPS of its queues",
        risk="many devices take their link down for this, some for seconds: connections stall and may break",
    ),
)

KNOBS = (
    Knob(
        name="net.rss",
        gain="no interrupts of devices",
        title="distribution of received packets over queues",
        why="a queue whose interrupt cannot leave an isolated CPU interrupts that CPU for each packet it receives",
        doc=f"{_DOC} (RSS: indirection table)",
        rule=_rss,
        path="ethtool -X INTERFACE (rxfh indirection)",
        targets="net:INTERFACE/rss of devices with such queues; rules that send flows to such a queue are kept and "
        "reported",
        recheck_on="device",
        after=("net.channels", "irq"),
        refusals={22: "the driver accepts no other table", 95: "the driver cannot change the table"},
    ),
    Knob(
        name="net.threaded",
        gain="no interrupts of devices",
        title="processing of received packets in threads",
        why="an interrupt that cannot leave an isolated CPU then only wakes a thread, which processes the packets "
        "elsewhere",
        doc="networking/napi.rst (Threaded NAPI)",
        rule=_threaded,
        path="/sys/class/net/INTERFACE/threaded",
        targets="net:INTERFACE/threaded of devices with a queue whose interrupt cannot leave an isolated CPU",
        recheck_on="device",
        after=("net.channels", "irq"),
        refusals={22: "the driver receives without NAPI", 95: "the driver receives without NAPI"},
    ),
    Knob(
        name="net.adaptive",
        gain="no interrupts of devices",
        title="interrupt rates that follow the load",
        why="a device that adapts its rate interrupts in a different rhythm from run to run",
        doc="networking/ethtool-netlink.rst (COALESCE_SET)",
        rule=_adaptive,
        path="ethtool -C INTERFACE adaptive-rx adaptive-tx",
        targets="net:INTERFACE/adaptive of every device",
        recheck_on="device",
        after=("net.channels",),
        refusals={22: "the driver cannot switch adaptive rates", 95: "the driver cannot switch adaptive rates"},
    ),
    Knob(
        name="net.defer",
        gain="no interrupts of devices",
        noticed="packets wait for up to 200 us",
        title="interrupts deferred while packets keep coming",
        why="with a 200 us timer between polls, a busy queue is emptied without an interrupt for each packet",
        doc="networking/napi.rst (Software IRQ coalescing)",
        rule=_defer,
        kind="number",
        path="/sys/class/net/INTERFACE/napi_defer_hard_irqs, gro_flush_timeout",
        targets="net:INTERFACE/napi_defer_hard_irqs and gro_flush_timeout of every device",
        recheck_on="device",
        refusals={95: "the driver cannot defer interrupts"},
        risk="packets wait for up to 200 us",
    ),
    Knob(
        name="net.rps_default",
        gain="no interrupts of devices",
        title="CPUs for packets of future interfaces",
        why="an interface that appears later starts with this mask",
        doc=f"{_SYSCTL} (rps_default_mask)",
        kernels="since 6.3",
        **derived(_CORE + "rps_default_mask", housekeeping_mask, kind=value_types.CPUMASK),
        recheck_on="device",
        after=("smt",),
        refusals=_KEPT_FREE,
    ),
    Knob(
        name="net.rps",
        gain="no interrupts of devices",
        title="CPUs that process received packets",
        why="the CPU that receives a packet interrupts a CPU of this mask, which then processes the packet",
        doc=f"{_DOC} (RPS)",
        rule=lambda context: _masks(context, "rx", "rps_cpus"),
        kind=value_types.CPUMASK,
        path="/sys/class/net/INTERFACE/queues/rx-N/rps_cpus",
        targets="net:INTERFACE/queues/rx-N/rps_cpus of every queue that hands packets to an isolated CPU",
        recheck_on="device",
        after=("smt", "net.channels", "net.rps_default"),
        refusals=_KEPT_FREE,
    ),
    Knob(
        name="net.xps",
        gain="no interrupts of devices",
        title="CPUs that send through a queue",
        why="a task that sends through a queue may have to send packets that other tasks left in it",
        doc=f"{_DOC} (XPS)",
        rule=lambda context: _masks(context, "tx", "xps_cpus"),
        kind=value_types.CPUMASK,
        path="/sys/class/net/INTERFACE/queues/tx-N/xps_cpus",
        targets="net:INTERFACE/queues/tx-N/xps_cpus of every queue that is assigned to an isolated CPU",
        recheck_on="device",
        after=("smt", "net.channels"),
        risk="a measured program that sends then shares the other CPUs' queues",
    ),
    Knob(
        name="net.rfs",
        gain="no interrupts of devices",
        title="steering of packets to their program's CPU",
        why="packets go to the CPU on which their program last ran, even if it is isolated and regardless of the masks",
        doc=f"{_DOC} (RFS, Accelerated RFS)",
        rule=one_file(_CORE + "rps_sock_flow_entries", "0")["rule"],
        kind=value_types.NUMBER,
        targets=f"file:{_CORE}rps_sock_flow_entries; 0 turns it off for every interface and device",
        recheck_on="device",
    ),
    Knob(
        name="net.busy_poll",
        title="busy polling by programs that wait for packets",
        why="a program that waits in poll or read then processes any packet of the queue on its own CPU",
        doc=f"{_SYSCTL} (busy_poll, busy_read)",
        rule=_busy_poll,
        kind=value_types.NUMBER,
        targets=f"file:{_CORE}busy_poll and busy_read",
        recheck_on="device",
    ),
)
