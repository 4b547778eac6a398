"""Network devices: how many queues they have, where arriving packets go, how often they interrupt.

Sources: networking/scaling.rst, networking/napi.rst, networking/ethtool-netlink.rst. That a queue's interrupt arrives
on a housekeeping CPU is the knob `irq`'s work; here is what follows from it, and what cannot be had so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from quiet import cpulist
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, Skip
from quiet.targets import net, registry

_NONE = "no network interface with a device behind it"
_NO_ANSWER = "its driver does not tell"
_DOC = "networking/scaling.rst"
# a receive queue's interrupt by its driver's name for it: virtio0-input.3, eth0-TxRx-3, eth0-rx-3, mlx5_comp3@pci:...
_QUEUE = re.compile(r"(?:-input\.|-Tx-?Rx-|-rx-|_comp)(\d+)(?=$|@)", re.IGNORECASE)
# A queue's settings, which go with it when there are fewer, and come back as defaults.
_OF_QUEUES = ("rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs", "tx_maxrate")
_LIMITS = tuple(f"byte_queue_limits/{name}" for name in ("hold_time", "limit_min", "limit_max"))


def devices(scene: RuleContext) -> list[str]:
    """The interfaces with a device behind them: those that interrupt."""
    return [name for name, device in scene.facts.interfaces.items() if device]


def queues(scene: RuleContext, interface: str, sort: str) -> list[str]:
    """The names of an interface's queues of a sort: "rx" gives ["rx-0", "rx-1"]."""
    numbers = scene.facts.reader.numbered(f"{net.folder(interface)}/queues", f"{sort}-")
    return [f"{sort}-{number}" for number in numbers]


def _interrupts(scene: RuleContext, interface: str) -> list[int]:
    return [int(number) for number in (registry.get(scene.facts.reader, f"net:{interface}/interrupts") or "").split()]


def stuck(scene: RuleContext, interface: str) -> dict[int, int]:
    """The receive queues whose interrupt arrives on an isolated CPU and may not be moved, each with its interrupt."""
    found = {}
    for number in _interrupts(scene, interface):
        queue = _QUEUE.search(scene.text(f"/sys/kernel/irq/{number}/actions") or "")
        base = f"/proc/irq/{number}/"
        fires = scene.text(base + "effective_affinity_list") or scene.text(base + "smp_affinity_list") or ""
        movable = scene.facts.reader.writable(base + "smp_affinity_list")
        if queue and not movable and cpulist.parse(fires) & scene.cpus.away:
            found[int(queue[1])] = number
    return found


def _channels(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    most = len(scene.cpus.housekeeping & scene.facts.online)
    for name in devices(scene):
        target = f"net:{name}/channels"
        if len(queues(scene, name, "rx")) < 2 and len(queues(scene, name, "tx")) < 2:
            yield Skip(target, "it has one queue")
        elif (current := registry.get(scene.facts.reader, target)) is None:
            yield Skip(target, _NO_ANSWER)
        else:
            fewer = {sort: min(count, most) for sort, count in net.counts(current).items()}
            yield DesiredValue(target, net.spell(fewer), current=current)
    if not devices(scene):
        yield Skip("net:*/channels", _NONE)


def _with_channels(scene: RuleContext) -> Iterator[str]:
    """What changes with the number of channels: the queues come and go, their interrupts are requested anew."""
    exists = scene.facts.reader.exists
    for name in devices(scene):
        yield f"net:{name}/rss"
        yield f"net:{name}/adaptive"
        for queue in queues(scene, name, "rx") + queues(scene, name, "tx"):
            base = f"queues/{queue}"
            files = (f"{base}/{file}" for file in (*_OF_QUEUES, *_LIMITS))
            yield from (f"net:{name}/{file}" for file in files if exists(f"{net.folder(name)}/{file}"))
        yield from (f"irq:{number}" for number in _interrupts(scene, name))


def _rss(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    reader, most = scene.facts.reader, len(scene.cpus.housekeeping & scene.facts.online)
    for name in devices(scene):
        there = stuck(scene, name)
        if not there:
            continue
        rules = net.counts(registry.get(reader, f"net:{name}/rules") or "")
        for rule, queue in rules.items():
            if queue in there:
                sends = f"rule {rule} sends its flows to queue {queue}"
                yield Skip(f"net:{name}/rules", f"{sends}: {_isolated(there[queue])}")
        target = f"net:{name}/rss"
        current = registry.get(reader, target)
        free = [n for n in range(len(queues(scene, name, "rx"))) if n not in there]
        free = [n for n in free if n < most] or free  # the others may go (net.channels)
        if current is None or not free:
            why = _NO_ANSWER if current is None else "no other queue is left"
            yield Skip(target, f"queue {min(there)}: {_isolated(there[min(there)])}; {why}")
            continue
        table = net.queues(current)
        spread = [free[at % len(free)] for at in range(len(table))] if there.keys() & set(table) else table
        yield DesiredValue(target, net.spell_queues(spread), current=current)


def _isolated(interrupt: int) -> str:
    return f"interrupt {interrupt} arrives on an isolated CPU, and may not be moved"


def _threaded(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    for name in devices(scene):
        if stuck(scene, name):
            yield DesiredValue(f"net:{name}/threaded", "1")


def _adaptive(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    for name in devices(scene):
        target = f"net:{name}/adaptive"
        current = registry.get(scene.facts.reader, target)
        if current is None:
            yield Skip(target, _NO_ANSWER)
        else:
            yield DesiredValue(target, net.spell(dict.fromkeys(net.counts(current), 0)), current=current)
    if not devices(scene):
        yield Skip("net:*/adaptive", _NONE)


def _defer(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    for name in devices(scene):
        for file, value in (("napi_defer_hard_irqs", "2"), ("gro_flush_timeout", "200000")):
            yield DesiredValue(f"net:{name}/{file}", value)
    if not devices(scene):
        yield Skip("net:*/napi_defer_hard_irqs", _NONE)


CHANNELS = (
    Knob(
        name="net.channels",
        title="queues of network devices",
        why="more queues than housekeeping CPUs only mean more interrupts, and queues kept for the isolated CPUs",
        doc=f"{_DOC} (RSS), networking/ethtool-netlink.rst (CHANNELS_SET)",
        rule=_channels,
        targets="net:INTERFACE/channels of devices with several queues: at most one of a sort per housekeeping CPU",
        recheck_on="device",
        after=("smt", "irq.default"),
        refusals={
            16: "its driver cannot change that while the interface is up",
            95: "its driver cannot change that",
        },
        verdicts={
            "indirection table": "a table made by hand (ethtool -X) uses queues that would go",
            "ntuple filter": "a rule made by hand (ethtool -N) uses a queue that would go",
            "AF_XDP": "a program (AF_XDP) uses a queue that would go",
        },
        entangled=_with_channels,
        moves="the device's interrupts, its RSS table, its adaptive rates, and RPS and XPS of its queues",
        risk="many devices take their link down for it, some for seconds: connections stall, and may break",
    ),
)

KNOBS = (
    Knob(
        name="net.rss",
        title="which queues get arriving packets",
        why="a queue whose interrupt cannot leave an isolated CPU interrupts it for each packet, unless it gets none",
        doc=f"{_DOC} (RSS: indirection table)",
        rule=_rss,
        targets="net:INTERFACE/rss of devices with such queues; rules that send flows to one are told, and left",
        recheck_on="device",
        after=("net.channels", "irq"),
        refusals={22: "its driver takes no other table", 95: "its driver cannot change that"},
    ),
    Knob(
        name="net.threaded",
        title="receiving in threads",
        why="an interrupt that cannot leave an isolated CPU at least leaves the packets to a thread, which can",
        doc="networking/napi.rst (Threaded NAPI)",
        rule=_threaded,
        targets="net:INTERFACE/threaded of devices with a queue whose interrupt cannot leave an isolated CPU",
        recheck_on="device",
        after=("net.channels", "irq"),
        refusals={22: "its driver receives without NAPI", 95: "its driver receives without NAPI"},
    ),
    Knob(
        name="net.adaptive",
        title="interrupt rates that follow the load",
        why="a device that adapts its rate interrupts in another rhythm from run to run",
        doc="networking/ethtool-netlink.rst (COALESCE_SET)",
        rule=_adaptive,
        targets="net:INTERFACE/adaptive of every device",
        recheck_on="device",
        after=("net.channels",),
        refusals={22: "its driver cannot change that", 95: "its driver cannot change that"},
    ),
    Knob(
        name="net.defer",
        title="interrupts deferred while packets keep coming",
        why="with a timer of 200 us between looks, a busy queue is emptied without an interrupt for each packet",
        doc="networking/napi.rst (Software IRQ coalescing)",
        rule=_defer,
        kind="number",
        targets="net:INTERFACE/napi_defer_hard_irqs and gro_flush_timeout of every device",
        recheck_on="device",
        refusals={95: "its driver cannot change that"},
        risk="packets wait for up to 200 us",
    ),
)
