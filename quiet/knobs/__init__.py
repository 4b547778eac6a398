"""All knobs, in the order in which they are applied and restored. A new one goes into its family and stands here."""

from __future__ import annotations

from quiet.knob import Knob
from quiet.knobs import (
    cpufreq,
    cpuset,
    idle,
    irq,
    kernel,
    mce,
    memory,
    network,
    power,
    pstate,
    rivals,
    services,
    slices,
    smt,
    steering,
    workqueue,
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
