"""CPU sets: systemd's slices, an isolated partition or two cpusets (cgroup v1), and the tasks that must leave.

Sources: systemd.resource-control(5) AllowedCPUs=, admin-guide/cgroup-v2.rst (cpuset.cpus.partition),
admin-guide/cgroup-v1/cpusets.rst.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet import cpulist
from quiet.errors import UsageError
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, RuleResult, Skip, moved_away
from quiet.targets import registry, systemd, systemd_slice, value_types
from quiet.targets.cgroup import GROUP

_ALL_SLICES = "slice:*"
REST = "/quiet-housekeeping"  # cgroup v1 only


def _slices(context: RuleContext) -> RuleResult:
    reader = context.facts.reader
    version, mount = context.facts.cgroup
    if not systemd.booted(reader):
        yield Skip(_ALL_SLICES, "no systemd, so no slices: the partition and the tasks' affinities do it")
        return
    if version != 2 or mount != systemd_slice.MOUNT:
        yield Skip(_ALL_SLICES, "systemd sets the CPUs of slices only on cgroup v2, with the cpuset controller in it")
        return
    names = [name for name in reader.names(mount) if name.endswith(".slice") or name == "init.scope"]
    for name in names:
        current = registry.get(reader, f"slice:{name}") or ""
        allowed = _allowed(current) or context.facts.online
        if current and not current.endswith(systemd_slice.BY) and not allowed & context.cpus.away:
            continue  # the administrator keeps it off already
        wanted = cpulist.format(moved_away(context, allowed)) + systemd_slice.BY
        yield DesiredValue(f"slice:{name}", wanted, current=current)
    if not names:
        yield Skip(_ALL_SLICES, "systemd has no slice with processes here")


def _allowed(current: str) -> cpulist.CpuSet:
    """The CPUs in a slice's value: what our drop-in says, when there is one."""
    try:
        return cpulist.parse(current.rpartition("not ")[2].removesuffix(systemd_slice.BY))
    except UsageError:
        return frozenset()


def _in_passing(context: RuleContext) -> Iterable[str]:
    # systemd passes the controller on, and before 6.2 a cpuset's change overwrites the affinities that users had set
    return ["cgroup:/+cpuset", *(f"task:{task.tid}" for task in context.facts.movable_tasks)]


def _partition(context: RuleContext) -> RuleResult:
    version, mount = context.facts.cgroup
    if version == 2:
        yield from _version_2(context)
    elif version == 1:
        yield from _version_1(context, mount)
    else:
        yield Skip(f"cgroup:{GROUP}", "no cgroup hierarchy with the cpuset controller is mounted")


def _version_2(context: RuleContext) -> RuleResult:
    isolated = cpulist.format(context.cpus.isolated)
    yield DesiredValue("cgroup:/+cpuset", "on", "the partition's cgroup needs the cpuset controller")
    yield DesiredValue(f"cgroup:{GROUP}", "present", "the cgroup of the isolated CPUs", creates=True)
    yield DesiredValue(
        f"cgroup:{GROUP}/cpuset.cpus", isolated, "the CPUs of the partition", True, kind=value_types.CPULIST
    )
    yield DesiredValue(f"cgroup:{GROUP}/cpuset.cpus.partition", "isolated", creates=True)


def _version_1(context: RuleContext, mount: str) -> RuleResult:
    # with the option noprefix (Android) the files have no "cpuset." before their names
    if context.text(f"{mount}/cpuset.cpus") is None:
        yield Skip(f"cgroup:{GROUP}", f"the cpuset hierarchy at {mount} has no cpuset.cpus file")
        return
    mems = context.text(f"{mount}/cpuset.mems") or "0"
    why = "cgroup v1 has no partitions: two cpusets and no load balancing between them"
    for group, cpus in ((GROUP, context.cpus.isolated), (REST, context.cpus.housekeeping)):
        yield DesiredValue(f"cgroup:{group}", "present", why, creates=True)
        yield DesiredValue(f"cgroup:{group}/cpuset.cpus", cpulist.format(cpus), why, True, kind=value_types.CPULIST)
        yield DesiredValue(f"cgroup:{group}/cpuset.mems", mems, why, True, kind=value_types.CPULIST)
        yield DesiredValue(f"cgroup:{group}/cpuset.cpu_exclusive", "1", why, True, kind=value_types.NUMBER)
    yield DesiredValue(f"cgroup:{GROUP}/cpuset.sched_load_balance", "0", why, True, kind=value_types.NUMBER)


def _shield_members(context: RuleContext) -> RuleResult:
    version, mount = context.facts.cgroup
    if version != 1 or context.text(f"{mount}/cpuset.cpus") is None:
        return
    for task in context.facts.movable_tasks:
        if context.text(f"/proc/{task.tid}/cpuset") == "/":
            yield DesiredValue(
                f"cpuset:{task.tid}", REST, f"{task.comm} leaves the CPUs of the shield", current="/", label=task.comm
            )
    # last: until its tasks have left, the root has nobody else to balance them
    yield DesiredValue("cgroup:/cpuset.sched_load_balance", "0", kind=value_types.NUMBER)


def _every_mask(context: RuleContext) -> Iterable[str]:
    # before 6.2 a cpuset's change overwrites the affinities that users had set (kernel commit da019032819a)
    return [f"task:{task.tid}" for task in context.facts.movable_tasks]


def _elsewhere(context: RuleContext) -> Iterable[str]:
    # known before, so that a restore does not take one for a child that has inherited the narrowed mask
    return [
        f"task:{task.tid}" for task in context.facts.movable_tasks if not cpulist.parse(task.cpus) & context.cpus.away
    ]


def _tasks(context: RuleContext) -> RuleResult:
    inside = _members(context)
    wanted: dict[str, str | None] = {}
    for task in context.facts.movable_tasks:
        if task.cpus not in wanted:
            allowed = cpulist.parse(task.cpus)
            wanted[task.cpus] = cpulist.format(moved_away(context, allowed)) if allowed & context.cpus.away else None
        new_cpus = wanted[task.cpus]
        if new_cpus is not None and task.tid not in inside:
            kind = "kernel thread" if task.kernel else "task"
            yield DesiredValue(
                f"task:{task.tid}",
                new_cpus,
                f"{kind} {task.comm} may run on the isolated CPUs",
                current=task.cpus,
                label=task.comm,
            )


def _members(context: RuleContext) -> set[int]:
    """The threads that were put on the isolated CPUs on purpose."""
    version, mount = context.facts.cgroup
    name = "cgroup.threads" if version == 2 else "tasks"
    return {int(tid) for tid in (context.text(f"{mount}{GROUP}/{name}") or "").split()} if version else set()


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
    Knob(
        name="cpuset",
        title="an isolated cpuset partition",
        why="the scheduler neither places nor balances tasks onto the CPUs of an isolated partition",
        doc="admin-guide/cgroup-v2.rst, cpuset.cpus.partition; admin-guide/cgroup-v1/cpusets.rst",
        rule=_partition,
        targets=f"cgroup:{GROUP} and its cpuset files; on cgroup v1 also cgroup:{REST}",
        after=("smt",),
        atomic=True,
        entangled=_every_mask,
        moves="before Linux 6.2 the affinity of every task",
        verdicts={
            "conflicts with housekeeping": "isolated at boot already, and then this kernel makes no partition of it; "
            "tasks are kept off by their affinity"
        },
        refusals={22: "no isolated partitions before Linux 6.1, or another cpuset owns the CPUs"},
    ),
    Knob(
        name="cpuset.members",
        title="tasks in the housekeeping cpuset (cgroup v1)",
        why="the shield keeps out only tasks that are in the other cpuset, and needs the root not to balance",
        doc="admin-guide/cgroup-v1/cpusets.rst",
        rule=_shield_members,
        targets="cpuset:TID of every movable thread in the root cpuset; none on cgroup v2, where a partition does it",
        recheck_on="task",
        after=("smt", "cpuset"),
        needs="cpuset",
        clamps=True,  # a task that is just ending stays where it is
        entangled=_every_mask,
        moves="before Linux 6.2 the affinity of every task",
        refusals={22: "the kernel does not let this thread leave the root cpuset"},
    ),
    Knob(
        name="tasks",
        title="tasks and movable kernel threads",
        why="a task that may run on an isolated CPU will, sooner or later",
        doc="sched_setaffinity(2); admin-guide/kernel-per-CPU-kthreads.rst",
        rule=_tasks,
        kind=value_types.CPULIST,
        targets="task:TID of every thread that may run on an isolated CPU and is not bound to it by the kernel",
        recheck_on="task",
        after=("smt", "slices", "cpuset", "cpuset.members"),
        clamps=True,
        entangled=_elsewhere,
        moves="the affinity of the threads' children, which they inherit",
        refusals={22: "bound to its CPU by the kernel", 3: "ended meanwhile"},
    ),
)
