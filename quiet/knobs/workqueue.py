"""Define knobs for unbound workqueues, which run deferred work: CPUs and affinity scope.

Source: core-api/workqueue.rst.
"""

from __future__ import annotations

from quiet import cpulist
from quiet.knobs.knob import NOT_HERE, DesiredValue, Knob, RuleContext, RuleResult, moved_away, one_file
from quiet.targets import registry, value_types

_BASE = "/sys/devices/virtual/workqueue"
_SCOPE = "/sys/module/workqueue/parameters/default_affinity_scope"


def _workqueues(context: RuleContext) -> RuleResult:
    reader = context.facts.reader
    names = ["global", *(n for n in reader.names(_BASE) if reader.exists(f"{_BASE}/{n}/cpumask"))]
    for name in names:
        target = f"workqueue:{name}"
        current = registry.get(reader, target)
        # the mask contains possible CPUs; the kernel requires at least one
        new = moved_away(context, cpulist.parse_mask(current or ""))
        why = "" if name == "global" else f"work of the queue {name} may run on an isolated CPU"
        yield DesiredValue(target, cpulist.format_mask(new), why, current=current, absent=NOT_HERE)


KNOBS = (
    Knob(
        name="workqueue",
        title="CPUs of unbound workqueues",
        why="unbound work (also the 1 Hz tick of nohz_full CPUs) runs on any CPU of this mask",
        doc="core-api/workqueue.rst, admin-guide/kernel-per-CPU-kthreads.rst",
        rule=_workqueues,
        kind=value_types.CPUMASK,
        targets="workqueue:global and workqueue:NAME; read from cpumask_requested if the kernel has it",
        path="/sys/devices/virtual/workqueue/cpumask, /sys/devices/virtual/workqueue/NAME/cpumask",
        kernels="since 6.8 an isolated partition changes the global mask by itself",
        after=("smt", "cpuset"),
    ),
    Knob(
        name="workqueue.scope",
        title="affinity scope of unbound work",
        why="'cpu' or 'smt' keeps work on the core that queued it; 'system' lets it run on any housekeeping CPU",
        doc="core-api/workqueue.rst (affinity scopes)",
        kernels="since 6.6",
        **one_file(_SCOPE, "cache", kind=value_types.TEXT),
        choices=("cpu", "smt", "cache", "numa", "system", "leave"),
    ),
)
