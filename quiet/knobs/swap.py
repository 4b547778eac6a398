"""Define knobs that prevent swapping of the measured work and, if the profile requests it, of the rest of the host.

Sources: admin-guide/cgroup-v2.rst (memory.swap.max), admin-guide/sysctl/vm.rst (swappiness), swapon(2).
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet.host.proc import meminfo
from quiet.knobs.knob import NOT_HERE, DesiredValue, Knob, RuleContext, RuleResult, Skip, bounded
from quiet.targets.cgroup import GROUP, SLICE, group
from quiet.targets.swap import Area, areas

_SWAPPINESS = "/proc/sys/vm/swappiness"
_NONE = "this host has no swap"


def _cgroup(context: RuleContext) -> RuleResult:
    version, mount = context.facts.cgroup
    own = group(context.facts.reader)
    maximum = f"own-slice:{SLICE[1:]}/MemorySwapMax" if own == SLICE else f"cgroup:{own}/memory.swap.max"
    if version != 2:
        yield Skip(maximum, "only cgroup v2 has a limit for swap")
    elif "memory" not in (context.text(f"{mount}/cgroup.controllers") or "").split():
        yield Skip(maximum, "this kernel's cgroups have no memory controller (cgroup_disable=memory?)")
    elif not areas(context.facts.reader):
        yield Skip(maximum, _NONE)
    else:
        yield DesiredValue("cgroup:/+memory", "on", "the limit needs the memory controller")
        yield DesiredValue(maximum, "0", creates=True)


def _devices(context: RuleContext) -> RuleResult:
    swapping = areas(context.facts.reader)
    if not swapping:
        yield Skip("swap:", _NONE)
        return
    used = sum(area.used for area in swapping)
    if used > meminfo(context.facts.reader, "MemAvailable") // 2:
        yield Skip("swap:", f"{used} KiB are swapped out, and too little memory is available to swap them in")
        return
    for area in reversed(_as_they_come_back(swapping)):
        target = f"swap:{area.path}"
        if area.deleted:
            yield Skip(target, "its file was deleted, so it could not be switched on again")
        else:
            state = "on" if area.priority < 0 else f"on {area.priority}"
            yield DesiredValue(target, "off", current=state, label=area.kind)


def _as_they_come_back(swapping: Iterable[Area]) -> list[Area]:
    """The devices in the order in which they must be re-enabled.

    Devices whose priority the kernel chose come in descending priority, because the first one gets the highest.
    """
    swapping = list(swapping)
    chosen = iter(sorted((area for area in swapping if area.priority < 0), key=lambda area: -area.priority))
    return [next(chosen) if area.priority < 0 else area for area in swapping]


KNOBS = (
    Knob(
        name="swap.cgroup",
        gain="repeatable memory behavior",
        title="no swap for the measured work",
        why="a page that was swapped out costs milliseconds when it is used next",
        doc="admin-guide/cgroup-v2.rst (memory.swap.max)",
        rule=_cgroup,
        targets=f"cgroup:{GROUP}/memory.swap.max (with systemd MemorySwapMax= of {SLICE[1:]}), "
        "and cgroup:/+memory, which the limit needs",
        path="/sys/fs/cgroup/quiet.slice/memory.swap.max",
        after=("smt", "cpuset"),
        atomic=True,
        needs="cpuset",
        refusals={
            2: 'the cgroup does not exist because the knob cpuset is "leave", or this kernel does not account swap'
        },
    ),
    Knob(
        name="swap.swappiness",
        gain="repeatable memory behavior",
        title="the host's tendency to swap",
        why="with a lower value, the kernel drops cached files before it swaps out programs",
        doc="admin-guide/sysctl/vm.rst (swappiness)",
        **bounded(_SWAPPINESS, 1, NOT_HERE, lambda now: now <= 1),
    ),
    Knob(
        name="swap.devices",
        gain="repeatable memory behavior",
        noticed="nothing is swapped out; a process that does not fit is killed",
        title="swap of the whole host",
        why="without swap, no other process occupies the disk, the memory bus or a lock by swapping",
        doc="swapon(2), swapoff(8)",
        rule=_devices,
        choices=("off", "leave"),
        targets="swap:PATH of every line of /proc/swaps",
        path="swapoff(2), swapon(2) of /proc/swaps",
        refusals={12: "the swapped-out pages do not fit into memory", 22: "the swap area was removed during the write"},
        risk="all swapped-out pages return to memory first, and a process that then does not fit is killed; "
        "swapon options other than the priority (discard) are not restored",
    ),
)
