"""All knobs, in the order in which they are applied and restored. A new one goes into its family and stands here."""

from __future__ import annotations

from quiet.knob import Knob
from quiet.knobs import cpufreq, cpuset, irq, kernel, memory, network, smt, steering, workqueue

KNOBS: tuple[Knob, ...] = (
    *smt.KNOBS,
    *cpuset.KNOBS,
    *irq.BEFORE,
    *network.CHANNELS,  # their interrupts are requested with the default mask, and then are to be moved
    *irq.KNOBS,
    *network.KNOBS,
    *steering.KNOBS,
    *workqueue.KNOBS,
    *cpufreq.KNOBS,
    *kernel.KNOBS,
    *memory.KNOBS,
)

BY_NAME: dict[str, Knob] = {knob.name: knob for knob in KNOBS}
