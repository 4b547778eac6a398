"""All knobs, in the order in which they are applied and restored. A new one goes into its family and stands here."""

from __future__ import annotations

from quiet.knob import Knob
from quiet.knobs import cpufreq, cpuset, idle, irq, kernel, mce, memory, power, pstate, smt, workqueue

KNOBS: tuple[Knob, ...] = (
    *smt.KNOBS,
    *cpuset.KNOBS,
    *irq.KNOBS,
    *workqueue.KNOBS,
    *pstate.DRIVER,
    *cpufreq.KNOBS,
    *pstate.KNOBS,
    *power.KNOBS,
    *idle.KNOBS,
    *mce.KNOBS,
    *kernel.KNOBS,
    *memory.KNOBS,
)

BY_NAME: dict[str, Knob] = {knob.name: knob for knob in KNOBS}
