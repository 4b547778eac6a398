"""All knobs, in the order in which they are applied and restored. A new one goes into its family and stands here."""

from __future__ import annotations

from quiet.knob import Knob
from quiet.knobs import (
    checks,
    console,
    cpufreq,
    cpuset,
    hugepages,
    irq,
    kernel,
    kthreads,
    memory,
    modules,
    rcu,
    reclaim,
    resctrl,
    scheduling,
    smt,
    swap,
    workqueue,
    writeback,
)

KNOBS: tuple[Knob, ...] = (
    *smt.KNOBS,
    *cpuset.KNOBS,
    *irq.KNOBS,
    *workqueue.KNOBS,
    *resctrl.KNOBS,
    *cpufreq.KNOBS,
    *kernel.KNOBS,
    *checks.KNOBS,
    *scheduling.KNOBS,
    *kthreads.KNOBS,
    *memory.KNOBS,
    *reclaim.KNOBS,
    *writeback.KNOBS,
    *swap.KNOBS,
    *hugepages.KNOBS,
    *console.KNOBS,
    *rcu.KNOBS,
    *modules.KNOBS,
)

BY_NAME: dict[str, Knob] = {knob.name: knob for knob in KNOBS}
