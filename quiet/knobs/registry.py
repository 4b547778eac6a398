"""Register all knobs in the order in which they are applied. Add a knob to its family, and a new family to KNOBS."""

from __future__ import annotations

from quiet.knobs import (
    cpufreq,
    cpuset,
    hugepages,
    idle,
    interruptions,
    irq,
    kernel,
    memory,
    network,
    power,
    resctrl,
    rivals,
    scheduling,
    services,
    smt,
    swap,
    workqueue,
)
from quiet.knobs.knob import Knob

KNOBS: tuple[Knob, ...] = (
    *services.KNOBS,
    *rivals.KNOBS,
    *smt.KNOBS,
    *scheduling.BEFORE,
    *cpuset.KNOBS,
    *irq.BEFORE,
    *network.CHANNELS,  # before `irq`: new interrupts have the default mask
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
    *swap.KNOBS,
    *hugepages.KNOBS,
    *interruptions.KNOBS,
)

BY_NAME: dict[str, Knob] = {knob.name: knob for knob in KNOBS}
