"""Define knobs for CPU sets: systemd's slices, an isolated partition or two cpusets (cgroup v1), and tasks to move.

Sources: systemd.resource-control(5) AllowedCPUs=, admin-guide/cgroup-v2.rst (cpuset.cpus.partition),
admin-guide/cgroup-v1/cpusets.rst.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet import cpulist
from quiet.errors import UsageError
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, RuleResult, Skip, moved_away
from quiet.machine.facts import Facts
from quiet.targets import registry, systemd, systemd_slice, value_types
from quiet.targets.cgroup import GROUP, SLICE, group, groups_below

_ALL_SLICES = "slice:*"
REST = "/quiet-housekeeping"  # cgroup v1 only
NOT_BALANCED = (
    "isolcpus=domain at boot took these CPUs out of the scheduler's domains, so nothing balances threads there; "
    "boot without domain, or pin each thread"
)


def _slices(context: RuleContext) -> RuleResult:
    reader = context.facts.reader
    version, mount = context.facts.cgroup
    if not systemd.booted(reader):
        yield Skip(_ALL_SLICES, "no systemd, so no slices: the knobs cpuset and tasks keep tasks off the isolated CPUs")
        return
    if version != 2 or mount != systemd_slice.MOUNT:
        yield Skip(_ALL_SLICES, "systemd sets the CPUs of slices only on cgroup v2 with the cpuset controller")
        return
    names = [name for name in reader.names(mount) if name.endswith(".slice") or name == "init.scope"]
    names = [name for name in names if name != SLICE[1:]]
    for name in names:
        current = registry.get(reader, f"slice:{name}") or ""
        allowed = _allowed(current) or context.facts.online
        if current and not current.endswith(systemd_slice.BY) and not allowed & context.cpus.away:
            continue  # the administrator already keeps the slice off these CPUs
        wanted = cpulist.format(moved_away(context, allowed)) + systemd_slice.BY
        yield DesiredValue(f"slice:{name}", wanted, current=current)
    if not names:
        yield Skip(_ALL_SLICES, "systemd has no slice with processes here")


def _allowed(current: str) -> cpulist.CpuSet:
    """The CPUs in the value of a slice, without the note that a drop-in of quiet sets them."""
    try:
        return cpulist.parse(current.rpartition("not ")[2].removesuffix(systemd_slice.BY))
    except UsageError:
        return frozenset()


def _in_passing(context: RuleContext) -> Iterable[str]:
    # systemd enables cpuset in the root's subtree_control; before 6.2, changing a cpuset overwrites users' affinities
    return ["cgroup:/+cpuset", *(f"task:{task.tid}" for task in context.facts.movable_tasks)]


def _partition(context: RuleContext) -> RuleResult:
    version, mount = context.facts.cgroup
    if version == 2:
        yield from _version_2(context)
    elif version == 1:
        yield from _version_1(context, mount)
    else:
        yield Skip(f"cgroup:{GROUP}", "no cgroup hierarchy with the cpuset controller is mounted")


def _balanced(context: RuleContext) -> bool:
    """Whether the scheduler should balance tasks among the isolated CPUs, and is able to."""
    return context.choice == "balanced" and not context.cpus.isolated & context.facts.boot_isolated


def _version_2(context: RuleContext) -> RuleResult:
    isolated, own = cpulist.format(context.cpus.isolated), group(context.facts.reader)
    target, cpus = f"cgroup:{own}", f"cgroup:{own}/cpuset.cpus"
    if own == SLICE:
        target, cpus = f"own-slice:{own[1:]}", f"own-slice:{own[1:]}/AllowedCPUs"
    yield DesiredValue("cgroup:/+cpuset", "on", "the partition's cgroup needs the cpuset controller")
    yield DesiredValue(target, "present", "the cgroup of the isolated CPUs", creates=True)
    yield DesiredValue(cpus, isolated, "the CPUs of the partition", True, kind=value_types.CPULIST)
    partition = f"cgroup:{own}/cpuset.cpus.partition"
    yield DesiredValue(partition, "root" if _balanced(context) else "isolated", creates=True)
    if context.choice == "balanced" and not _balanced(context):
        yield Skip(partition, NOT_BALANCED)


def _conflict(facts: Facts) -> str:
    """The reason why the partition conflicts with the housekeeping CPUs chosen at boot (kernel/cgroup/cpuset.c)."""
    here = "the knob tasks keeps tasks off the isolated CPUs"
    if facts.nohz_full and not facts.boot_isolated:  # since Linux 6.19: isolated_cpus_can_update()
        return f"nohz_full= and the partition together would leave the kernel no housekeeping CPU; {here}"
    return (
        f"the CPUs are already isolated at boot (isolcpus=domain), so this kernel rejects a partition of them; {here}"
    )


def _version_1(context: RuleContext, mount: str) -> RuleResult:
    # with the mount option noprefix (Android), file names have no "cpuset." prefix
    if context.text(f"{mount}/cpuset.cpus") is None:
        yield Skip(f"cgroup:{GROUP}", f"the cpuset hierarchy at {mount} has no cpuset.cpus file")
        return
    mems = context.text(f"{mount}/cpuset.mems") or "0"
    why = "cgroup v1 has no partitions: two cpusets and no load balancing between them"
    for name, cpus in ((GROUP, context.cpus.isolated), (REST, context.cpus.housekeeping)):
        yield DesiredValue(f"cgroup:{name}", "present", why, creates=True)
        yield DesiredValue(f"cgroup:{name}/cpuset.cpus", cpulist.format(cpus), why, True, kind=value_types.CPULIST)
        yield DesiredValue(f"cgroup:{name}/cpuset.mems", mems, why, True, kind=value_types.CPULIST)
        yield DesiredValue(f"cgroup:{name}/cpuset.cpu_exclusive", "1", why, True, kind=value_types.NUMBER)
    load_balance = f"cgroup:{GROUP}/cpuset.sched_load_balance"
    if not _balanced(context):
        yield DesiredValue(load_balance, "0", why, True, kind=value_types.NUMBER)
    elif context.text(f"{mount}{GROUP}/cpuset.sched_load_balance") == "0":  # a new cpuset has 1
        yield DesiredValue(load_balance, "1", why, kind=value_types.NUMBER)
    if context.choice == "balanced" and not _balanced(context):
        yield Skip(load_balance, NOT_BALANCED)


def _mems(context: RuleContext) -> RuleResult:
    own = group(context.facts.reader)
    target = f"own-slice:{own[1:]}/AllowedMemoryNodes" if own == SLICE else f"cgroup:{own}/cpuset.mems"
    if context.facts.cgroup[0] != 2:
        yield Skip(target, "only with cgroup v2; on v1 the knob cpuset gives the group all nodes")
        return
    if context.choice[0].isdigit():
        wanted = cpulist.parse(context.choice)
        if absent := wanted - context.facts.memory_nodes:
            yield Skip(target, f"no memory on node {cpulist.format(absent)}")
            return
    else:
        nodes = context.facts.nodes.items()
        wanted = frozenset(node for node, cpus in nodes if cpus & context.cpus.isolated) & context.facts.memory_nodes
        if wanted == context.facts.memory_nodes:
            yield Skip(target, "the isolated CPUs' nodes have all the memory")
            return
        if not wanted:
            yield Skip(target, "the isolated CPUs' nodes have no memory")
            return
    yield DesiredValue(target, cpulist.format(wanted), creates=True)


def _shield_members(context: RuleContext) -> RuleResult:
    version, mount = context.facts.cgroup
    if version != 1 or context.text(f"{mount}/cpuset.cpus") is None:
        return
    for task in context.facts.movable_tasks:
        if context.text(f"/proc/{task.tid}/cpuset") == "/":
            yield DesiredValue(
                f"cpuset:{task.tid}", REST, f"{task.comm} may run on the isolated CPUs", current="/", label=task.comm
            )
    # last: until the tasks have left the root cpuset, only that cpuset can balance them
    yield DesiredValue("cgroup:/cpuset.sched_load_balance", "0", kind=value_types.NUMBER)


def _every_mask(context: RuleContext) -> Iterable[str]:
    # before 6.2, changing a cpuset overwrites the affinities that users had set (kernel commit da019032819a)
    return [f"task:{task.tid}" for task in context.facts.movable_tasks]


def _elsewhere(context: RuleContext) -> Iterable[str]:
    # recorded first, so that a restore does not mistake such a task for a child that inherited a narrowed mask
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
    """The threads that were placed on the isolated CPUs on purpose."""
    version, mount = context.facts.cgroup
    name = "cgroup.threads" if version == 2 else "tasks"
    reader = context.facts.reader
    folders = groups_below(reader, f"{mount}{group(reader)}") if version else ()
    return {int(tid) for folder in folders for tid in (context.text(f"{folder}/{name}") or "").split()}


KNOBS = (
    Knob(
        name="slices",
        gain="no other tasks",
        title="the CPUs of systemd's slices",
        why="services, sessions and machines stay on housekeeping CPUs, and systemd keeps the cpuset controller on",
        doc="systemd.resource-control(5), AllowedCPUs=; admin-guide/cgroup-v2.rst",
        rule=_slices,
        targets="slice:NAME of every top-level slice, and init.scope",
        after=("smt",),
        path="AllowedCPUs= of systemd's slices",
        entangled=_in_passing,
        moves="cpuset in the root cgroup's subtree_control; the affinity of kernel threads (before Linux 7.0) and of "
        "every task (before 6.2)",
    ),
    Knob(
        name="cpuset",
        gain="no other tasks",
        noticed="tasks run on the housekeeping CPUs only",
        title="a cpuset partition of the isolated CPUs",
        why="the scheduler neither places nor balances other tasks onto the CPUs of a partition",
        doc="admin-guide/cgroup-v2.rst, cpuset.cpus.partition; admin-guide/cgroup-v1/cpusets.rst",
        rule=_partition,
        choices=("quiet", "balanced", "leave"),
        targets=f"cgroup:{GROUP} and its cpuset files; with systemd own-slice:{SLICE[1:]} and cgroup:{SLICE}; "
        f"on cgroup v1 also cgroup:{REST}",
        after=("smt",),
        atomic=True,
        entangled=_every_mask,
        moves="the affinity of kernel threads (before Linux 7.0) and of every task (before 6.2)",
        verdicts={"conflicts with housekeeping": _conflict},
        kernels="isolated partitions: since 6.1; they also move kernel threads, since 6.8 unbound work, and since 7.0 "
        "kernel threads that start later",
        path="/sys/fs/cgroup/quiet.slice/cpuset.cpus.partition",
        refusals={22: "no isolated partitions before Linux 6.1, or another cpuset owns the CPUs"},
        risk="'balanced' spreads the threads of one program over the isolated CPUs, and may also move a single thread "
        "between them",
    ),
    Knob(
        name="cpuset.mems",
        gain="repeatable memory behavior",
        title="memory of the isolated CPUs' NUMA nodes",
        why="each access to a page on another node takes longer, and the page's node would differ between runs",
        doc="admin-guide/cgroup-v2.rst, cpuset.mems",
        rule=_mems,
        kind=value_types.CPULIST,
        lists=True,
        targets=f"cgroup:{GROUP}/cpuset.mems (with systemd AllowedMemoryNodes= of {SLICE[1:]})",
        after=("smt", "cpuset"),
        needs="cpuset",
        path="/sys/fs/cgroup/quiet.slice/cpuset.mems",
        refusals={2: 'the cgroup does not exist; the knob cpuset must not be "leave"'},
        risk="a program that needs more memory than these nodes have is killed; it does not get pages of another node",
    ),
    Knob(
        name="cpuset.members",
        gain="no other tasks",
        title="tasks in the housekeeping cpuset (cgroup v1)",
        why="the isolated cpuset keeps out only tasks of the housekeeping cpuset, and requires that the root cpuset "
        "does no load balancing",
        doc="admin-guide/cgroup-v1/cpusets.rst",
        rule=_shield_members,
        targets="cpuset:TID of every movable thread in the root cpuset; none on cgroup v2, which has partitions",
        recheck_on="task",
        after=("smt", "cpuset"),
        needs="cpuset",
        path="/sys/fs/cgroup/cpuset/quiet-housekeeping/tasks",
        clamps=True,  # the kernel does not move an exiting task
        entangled=_every_mask,
        moves="the affinity of kernel threads (before Linux 7.0) and of every task (before 6.2)",
        refusals={22: "the kernel does not let this thread leave the root cpuset"},
    ),
    Knob(
        name="tasks",
        gain="no other tasks",
        title="tasks and movable kernel threads",
        why="sooner or later the scheduler runs a task on each CPU that its affinity allows",
        doc="sched_setaffinity(2); admin-guide/kernel-per-CPU-kthreads.rst",
        rule=_tasks,
        kind=value_types.CPULIST,
        targets="task:TID of every thread that may run on an isolated CPU and is not bound to it by the kernel",
        recheck_on="task",
        after=("smt", "slices", "cpuset", "cpuset.members"),
        kernels="an isolated partition moves kernel threads by itself; since 7.0 also those that start later",
        path="sched_setaffinity(2)",
        clamps=True,
        entangled=_elsewhere,
        moves="the affinity of the threads' children, which they inherit",
        refusals={22: "bound to its CPU by the kernel", 3: "ended during the write"},
    ),
)
