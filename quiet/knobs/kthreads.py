"""Kernel threads that belong to an isolated CPU: they cannot go, but they can come before the measured work.

Source: admin-guide/kernel-per-CPU-kthreads.rst. All others are moved by the knob `tasks`.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet.knobs.knob import DesiredValue, Knob, RuleContext, Skip
from quiet.targets import registry

_NAMES = ("ksoftirqd", "rcuc", "ktimers")


def _priority(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    found = False
    for task in scene.facts.tasks:
        name, _, cpu = task.comm.partition("/")
        if not (task.kernel and name in _NAMES and cpu.isdecimal() and int(cpu) in scene.cpus.isolated):
            continue
        found = True
        target = f"sched:{task.tid}"
        current = registry.get(scene.facts.reader, target)
        yield DesiredValue(target, f"fifo {scene.choice}", current=current, label=task.comm)
    if not found:
        yield Skip("sched:", "no softirq, RCU or timer threads of the isolated CPUs can be seen")


KNOBS = (
    Knob(
        name="kthreads.priority",
        title="real-time priority of the isolated CPUs' softirq, RCU and timer threads",
        why="when the measured work is real-time itself, these threads must have a higher priority or never run",
        doc="admin-guide/kernel-per-CPU-kthreads.rst, sched(7)",
        rule=_priority,
        choices=("leave",),
        numeric=True,
        targets="sched:TID of ksoftirqd/N, rcuc/N and ktimers/N of the isolated CPUs",
        after=("smt", "rt_throttling"),
        refusals={22: "real-time priorities are 1 to 99", 3: "ended meanwhile"},
        risk="with ordinary work they interrupt it sooner than they would",
    ),
)
