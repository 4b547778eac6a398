"""All knobs, in the order in which they are applied and restored. A new one goes into its family and stands here."""

from __future__ import annotations

from quiet.knobs import (
    console,
    cpufreq,
    cpuset,
    hugepages,
    idle,
    irq,
    kernel,
    memory,
    modules,
    network,
    power,
    rcu,
    resctrl,
    rivals,
    scheduling,
    services,
    smt,
    static_keys,
    swap,
    workqueue,
    writeback,
)
from quiet.knobs.knob import Knob

KNOBS: tuple[Knob, ...] = (
    *services.KNOBS,
    *rivals.KNOBS,
    *smt.KNOBS,
    *cpuset.KNOBS,
    *irq.BEFORE,
    *network.CHANNELS,  # their interrupts are requested with the default mask, and then are to be moved
    *irq.KNOBS,
    *network.KNOBS,
    *workqueue.KNOBS,
    *resctrl.KNOBS,
    *cpufreq.KNOBS,
    *power.KNOBS,
    *idle.KNOBS,
    *kernel.KNOBS,
    *scheduling.KNOBS,
    *memory.KNOBS,
    *writeback.KNOBS,
    *swap.KNOBS,
    *hugepages.KNOBS,
    *console.KNOBS,
    *static_keys.KNOBS,
    *rcu.KNOBS,
    *modules.KNOBS,
)

BY_NAME: dict[str, Knob] = {knob.name: knob for knob in KNOBS}
