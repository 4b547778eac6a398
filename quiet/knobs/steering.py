"""Which CPU works on a packet after the interrupt (RPS, RFS), and which queue a CPU sends through (XPS).

Sources: networking/scaling.rst, admin-guide/sysctl/net.rst, ABI/testing/sysfs-class-net-queues.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quiet import cpulist
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, Skip, derived, housekeeping_mask, moved_away, one_file
from quiet.knobs.network import queues
from quiet.targets import net, value_types

_SYS = "/proc/sys/net/core/"
_DOC = "networking/scaling.rst"
_SYSCTL = "admin-guide/sysctl/net.rst"
# The kernel takes isolcpus= and nohz_full= CPUs out of what is written, and refuses what is empty then.
_KEPT_FREE = {22: "all of its CPUs are kept free since boot (isolcpus, nohz_full)"}


def _masks(scene: RuleContext, sort: str, file: str) -> Iterator[DesiredValue]:
    """The masks of all queues that name an isolated CPU: containers' and bridges' interfaces have them too."""
    for name in scene.facts.interfaces:
        for queue in queues(scene, name, sort):
            # no answer is what an interface with one queue gives
            current = scene.text(f"{net.folder(name)}/queues/{queue}/{file}")
            if current and (cpus := cpulist.parse_mask(current)) & scene.cpus.away:
                new = cpulist.format_mask(moved_away(scene, cpus))
                yield DesiredValue(f"net:{name}/queues/{queue}/{file}", new, current=current)


def _rps(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    return _masks(scene, "rx", "rps_cpus")


def _xps(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    return _masks(scene, "tx", "xps_cpus")


def _busy_poll(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    for name in ("busy_poll", "busy_read"):
        yield from one_file(_SYS + name, "0")["rule"](scene)


KNOBS = (
    Knob(
        name="net.rps_default",
        title="CPUs for packets of interfaces to come",
        why="an interface that appears later starts with this mask",
        doc=f"{_SYSCTL} (rps_default_mask)",
        **derived(_SYS + "rps_default_mask", housekeeping_mask, kind=value_types.CPUMASK),
        recheck_on="device",
        after=("smt",),
        refusals=_KEPT_FREE,
    ),
    Knob(
        name="net.rps",
        title="CPUs that packets are handed to",
        why="a CPU of this mask is interrupted by another one, to work on packets that arrived there",
        doc=f"{_DOC} (RPS)",
        rule=_rps,
        kind=value_types.CPUMASK,
        targets="net:INTERFACE/queues/rx-N/rps_cpus of every queue that hands packets to an isolated CPU",
        recheck_on="device",
        after=("smt", "net.channels", "net.rps_default"),
        refusals=_KEPT_FREE,
    ),
    Knob(
        name="net.xps",
        title="CPUs that send through a queue",
        why="who sends through a queue may have to send what others left in it",
        doc=f"{_DOC} (XPS)",
        rule=_xps,
        kind=value_types.CPUMASK,
        targets="net:INTERFACE/queues/tx-N/xps_cpus of every queue that is meant for an isolated CPU",
        recheck_on="device",
        after=("smt", "net.channels"),
        risk="a measured program that sends then shares the other CPUs' queues",
    ),
    Knob(
        name="net.rfs",
        title="packets follow the program",
        why="packets go to the CPU where their program last ran, also when it is isolated, and whatever the masks say",
        doc=f"{_DOC} (RFS, Accelerated RFS)",
        rule=one_file(_SYS + "rps_sock_flow_entries", "0")["rule"],
        kind=value_types.NUMBER,
        targets=f"file:{_SYS}rps_sock_flow_entries; with 0 no interface does it, and no device is told where to send",
        recheck_on="device",
    ),
    Knob(
        name="net.busy_poll",
        title="programs that wait for packets poll the device",
        why="a program in poll or read then works on any packet of the queue while it waits, where it runs",
        doc=f"{_SYSCTL} (busy_poll, busy_read)",
        rule=_busy_poll,
        kind=value_types.NUMBER,
        targets=f"file:{_SYS}busy_poll and busy_read",
        recheck_on="device",
    ),
)
