"""systemd's slices keep off the isolated CPUs, in a way that systemd itself does not undo.

Sources: systemd.resource-control(5) AllowedCPUs=, admin-guide/cgroup-v2.rst.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet import cpulist
from quiet.errors import UsageError
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, Skip, moved_away
from quiet.machine.facts import Task
from quiet.targets import registry, systemd, systemd_slice

_ALL = "slice:*"


def _slices(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    reader = scene.facts.reader
    version, mount = scene.facts.cgroup
    if not systemd.booted(reader):
        yield Skip(_ALL, "no systemd, so no slices: the partition and the tasks' affinities do it")
        return
    if version != 2 or mount != systemd_slice.MOUNT:
        yield Skip(_ALL, "systemd sets the CPUs of slices only on cgroup v2, with the cpuset controller in it")
        return
    names = [name for name in reader.names(mount) if name.endswith(".slice") or name == "init.scope"]
    for name in names:
        current = registry.get(reader, f"slice:{name}") or ""
        allowed = _allowed(current) or scene.facts.online
        if current and not current.endswith(systemd_slice.BY) and not allowed & scene.cpus.away:
            continue  # the administrator keeps it off already
        wanted = cpulist.format(moved_away(scene, allowed)) + systemd_slice.BY
        yield DesiredValue(f"slice:{name}", wanted, current=current)
    if not names:
        yield Skip(_ALL, "systemd has no slice with processes here")


def _allowed(current: str) -> cpulist.CpuSet:
    """The CPUs in a slice's value: what our drop-in says, when there is one."""
    try:
        return cpulist.parse(current.rpartition("not ")[2].removesuffix(systemd_slice.BY))
    except UsageError:
        return frozenset()


def _in_passing(scene: RuleContext) -> Iterable[str]:
    # systemd passes the controller on, and before 6.2 a cpuset's change overwrites the affinities that users had set
    return ["cgroup:/+cpuset", *(f"task:{task.tid}" for task in _movable(scene))]


def _movable(scene: RuleContext) -> list[Task]:
    return [task for task in scene.facts.tasks if not task.bound]


KNOBS = (
    Knob(
        name="slices",
        title="the CPUs of systemd's slices",
        why="services, sessions and machines stay on housekeeping CPUs, and systemd keeps the cpuset controller on",
        doc="systemd.resource-control(5), AllowedCPUs=; admin-guide/cgroup-v2.rst",
        rule=_slices,
        targets="slice:NAME of every slice at the top, and init.scope",
        after=("smt",),
        entangled=_in_passing,
        moves="whether the root cgroup passes cpuset on, and before Linux 6.2 the affinity of every task",
    ),
)
