"""All knobs, in the order in which they are applied and restored. A new one goes into its family and stands here."""

from __future__ import annotations

from quiet.knob import Knob
from quiet.knobs import (
    checks,
    console,
    cpufreq,
    cpuset,
    hugepages,
    idle,
    irq,
    kernel,
    kthreads,
    mce,
    memory,
    modules,
    network,
    power,
    pstate,
    rcu,
    reclaim,
    resctrl,
    rivals,
    scheduling,
    services,
    slices,
    smt,
    steering,
    swap,
    workqueue,
    writeback,
)

KNOBS: tuple[Knob, ...] = (
    *services.KNOBS,
    *rivals.KNOBS,
    *smt.KNOBS,
    *slices.KNOBS,
    *cpuset.KNOBS,
    *irq.BEFORE,
    *network.CHANNELS,  # their interrupts are requested with the default mask, and then are to be moved
    *irq.KNOBS,
    *network.KNOBS,
    *steering.KNOBS,
    *workqueue.KNOBS,
    *resctrl.KNOBS,
    *pstate.DRIVER,
    *cpufreq.KNOBS,
    *pstate.KNOBS,
    *power.KNOBS,
    *idle.KNOBS,
    *mce.KNOBS,
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
