"""Report the state of a host: its CPUs, its capabilities, and the applied profile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from quiet import __version__
from quiet.cpulist import CpuSet
from quiet.knobs import rivals
from quiet.machine import virtualization, write_access
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts

if TYPE_CHECKING:  # not needed if nothing is applied
    from quiet.settings.applied_state import AppliedState


class CpuTopology(NamedTuple):
    """The CPUs of a host. `slow`: the CPUs of slower cores; `nodes`: the CPUs of each NUMA node."""

    online: CpuSet
    offline: CpuSet
    cores: tuple[CpuSet, ...]
    slow: CpuSet
    nodes: Mapping[int, CpuSet]
    boot_isolated: CpuSet
    nohz_full: CpuSet


class AppliedProfile(NamedTuple):
    """The applied profile.

    `targets`: the number of targets that were to be changed, including those that the kernel refused; `since`: the time
    of the apply in seconds since the epoch.
    """

    profile: str
    source: str
    cpus: CpuPartition
    since: float
    targets: int
    complete: bool
    restoring: bool
    damage: tuple[str, ...]  # damage of the journal; the applied state is then uncertain


class HostStatus(NamedTuple):
    """The status of a host for `quiet status`.

    `confined`: the reason why quiet cannot change any setting, else None; `unreachable`: effects of the hypervisor or
    of the container's host that no knob can prevent.
    """

    version: str
    kernel: str | None
    processor: str
    virtual: str | None
    cpus: CpuTopology
    can: Mapping[str, str]
    rivals: tuple[str, ...]
    confined: str | None
    unreachable: tuple[str, ...]
    applied: AppliedProfile | None


def status(facts: Facts, state: AppliedState | None) -> HostStatus:
    """The status of a host. `state`: the journal as read; None if nothing is applied."""
    cpus = CpuTopology(
        online=facts.online,
        offline=facts.present - facts.online,
        cores=tuple(facts.cores),
        slow=facts.slow_cpus,
        nodes=facts.nodes,
        boot_isolated=facts.boot_isolated,
        nohz_full=facts.nohz_full,
    )
    return HostStatus(
        version=__version__,
        kernel=facts.reader.text("/proc/sys/kernel/osrelease"),
        processor=virtualization.model(facts),
        virtual=virtualization.virtual(facts) or None,
        cpus=cpus,
        can=virtualization.kernel_can(facts),
        rivals=tuple(rivals.running(facts)),
        confined=write_access.whole(facts) or None,
        unreachable=tuple(virtualization.disturbances(facts)),
        applied=_applied(state) if state else None,
    )


def _applied(state: AppliedState) -> AppliedProfile:
    return AppliedProfile(
        profile=state.profile,
        source=state.source,
        cpus=state.cpus,
        since=state.time,
        targets=sum(not entry.passing for entry in state.entries.values()),
        complete=state.complete and not state.restoring,
        restoring=state.restoring,
        damage=tuple(map(str, state.damage)),
    )
