"""Define knobs for the CPU affinity of interrupts. Source: core-api/irq/irq-affinity.rst."""

from __future__ import annotations

from quiet import cpulist
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, RuleResult, Skip, derived, housekeeping_mask, moved_away
from quiet.targets import value_types

_FIXED = "managed by its driver, or bound to its CPU: the kernel refuses to move it"
_REFUSALS = {
    1: _FIXED,
    2: "the interrupt was released during the write",
    5: _FIXED,
    22: "the interrupt controller cannot route to these CPUs",
    28: "no free vector on these CPUs",
}
_DEFAULT = "/proc/irq/default_smp_affinity"


def _irqs(context: RuleContext) -> RuleResult:
    away = context.cpus.away
    text = context.text
    wanted: dict[str, str] = {}  # cached: thousands of interrupts share a few masks
    for number, current in context.facts.irq_cpus.items():
        allowed = cpulist.parse(current)
        target = f"irq:{number}"
        if not allowed & away:
            fires = cpulist.parse(text(f"/proc/irq/{number}/effective_affinity_list") or "")
            if fires & away:
                name = _actions(context, number)
                yield Skip(target, "still routed to an isolated CPU until its next interrupt", name)
            continue
        name = _actions(context, number)
        if not context.facts.reader.writable(f"/proc/irq/{number}/smp_affinity_list"):
            yield Skip(target, _FIXED, name)
        else:
            if current not in wanted:
                wanted[current] = cpulist.format(moved_away(context, allowed))
            yield DesiredValue(
                target, wanted[current], f"{name} may interrupt an isolated CPU", current=current, label=name
            )


def _actions(context: RuleContext, number: int) -> str:
    return context.text(f"/sys/kernel/irq/{number}/actions") or "no handler"


BEFORE = (
    Knob(
        name="irq.default",
        gain="no interrupts of devices",
        title="CPUs for interrupts requested from now on",
        why="an interrupt that a driver requests later starts with this mask",
        doc="core-api/irq/irq-affinity.rst",
        **derived(_DEFAULT, housekeeping_mask, kind=value_types.CPUMASK),
        after=("smt", "irqbalance"),
    ),
)

KNOBS = (
    Knob(
        name="irq",
        gain="no interrupts of devices",
        noticed="device interrupts run on the housekeeping CPUs only",
        title="CPUs of every interrupt",
        why="each interrupt on an isolated CPU takes time from the measured work",
        doc="core-api/irq/irq-affinity.rst",
        rule=_irqs,
        kind=value_types.CPULIST,
        targets="irq:N of every interrupt that may arrive on an isolated CPU",
        path="/proc/irq/N/smp_affinity_list",
        recheck_on="device",
        after=("smt", "irqbalance", "irq.default", "net.channels"),
        refusals=_REFUSALS,
    ),
)
