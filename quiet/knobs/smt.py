"""Define the knob for SMT: hardware threads of one core share its execution units.

Source: ABI sysfs-devices-system-cpu (smt/).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from quiet import cpulist
from quiet.knobs.cpufreq import policy_state
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, RuleResult, Skip
from quiet.machine.facts import CPU
from quiet.targets import value_types

_FIXED = {
    "forceoff": "off by the kernel's command line until the next boot",
    "notsupported": "the processor has no SMT, or the firmware switched it off",
    "notimplemented": "this architecture's kernel cannot switch SMT",
}


def _smt(context: RuleContext) -> RuleResult:
    control = f"{CPU}/smt/control"
    state = context.text(control)
    if context.choice == "off":
        if state is None or state in _FIXED:
            yield Skip(f"file:{control}", _FIXED.get(state or "", "this kernel does not have this setting"))
        else:
            yield DesiredValue(f"file:{control}", "off", current=state)
        return
    for cpu in sorted(context.cpus.offline):
        yield DesiredValue(
            f"file:{CPU}/cpu{cpu}/online",
            "0",
            f"CPU {cpu} shares a core with an isolated CPU",
            kind=value_types.NUMBER,
        )
    for cpu in sorted(context.cpus.isolated):
        if stuck := (context.facts.siblings(cpu) & context.facts.online) - context.cpus.away:
            name = cpulist.format(stuck)
            yield Skip(
                f"file:{CPU}/cpu{min(stuck)}/online",
                f"CPU {name} shares CPU {cpu}'s core and stays online",
            )


def _disturbed(context: RuleContext) -> Iterable[str]:
    """Yield the targets that hotplug changes: the settings of a CPU vanish with the CPU and may return as defaults."""
    facts, offline = context.facts, context.cpus.offline
    # re-enabling SMT also starts CPUs that were offline before, so the state of every CPU is recorded
    yield from (f"file:{CPU}/cpu{cpu}/online" for cpu in sorted(facts.present))
    for cpu in sorted(offline):
        base = f"{CPU}/cpu{cpu}/cpuidle"
        yield from (f"file:{base}/{state}/disable" for state in facts.reader.names(base))
    for number, cpus in facts.policies.items():
        if cpus & offline:
            yield from policy_state(context.facts.reader, number)
    # the kernel moves tasks and interrupts of the CPUs that go offline to any other CPU
    stay = facts.online - offline
    homeless = cache(lambda text: stay.isdisjoint(cpulist.parse(text)))  # thousands share a few masks
    yield from (f"irq:{irq}" for irq, allowed in facts.irq_cpus.items() if allowed and homeless(allowed))
    yield from (f"task:{task.tid}" for task in facts.movable_tasks if homeless(task.cpus))
    if facts.cgroup[0] == 1:
        yield from _version_1_cpusets(context, facts.cgroup[1], "")


def _version_1_cpusets(context: RuleContext, mount: str, path: str) -> Iterator[str]:
    """Yield the cgroup v1 cpusets that permanently lose a CPU when it goes offline (cgroup-v1/cpusets.rst)."""
    for name in context.facts.reader.names(mount + path):
        group = f"{path}/{name}"
        if context.facts.reader.exists(f"{mount}{group}/cpuset.cpus"):
            yield f"cgroup:{group}/cpuset.cpus"
            yield from _version_1_cpusets(context, mount, group)


KNOBS = (
    Knob(
        name="smt",
        gain="no other tasks",
        noticed="sibling threads of the isolated cores are offline",
        title="sibling threads of the isolated cores",
        why="two threads of one core share its pipelines and caches, so one thread's work slows down the other's "
        "measurement",
        doc="ABI/testing/sysfs-devices-system-cpu (smt/control), core-api/cpu_hotplug.rst",
        rule=_smt,
        choices=("siblings", "off", "leave"),
        targets="file:/sys/devices/system/cpu/cpuN/online, or smt/control for the whole machine",
        entangled=_disturbed,
        moves="the idle states and the frequency policy of a CPU that goes offline, and interrupts and tasks that are "
        "bound to it",
        refusals={16: "the CPU does the timekeeping or is otherwise needed", 1: "forced off until the next boot"},
    ),
)
