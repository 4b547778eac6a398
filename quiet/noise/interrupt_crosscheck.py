"""Whether the trace and the kernel's own counts agree: each line of /proc/interrupts beside the interrupts traced."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quiet.noise.call_nesting import IRQ, VECTOR, Frame
from quiet.noise.counters import Counters

# Lines of /proc/interrupts that count something that another line counts too, or no interrupt at all.
NOT_INTERRUPTS = ("MCP", "PMI", "TLB", "RTR", "ERR", "MIS")
TIMERS = ("arch_timer",)  # what stands for LOC where the timer is a numbered interrupt (arm64)
LABELS = {
    "local_timer": "LOC",
    "reschedule": "RES",
    "call_function": "CAL",
    "call_function_single": "CAL",
    "irq_work": "IWI",
    "spurious_apic": "SPU",
    "thermal_apic": "TRM",
    "threshold_apic": "THR",
    "deferred_error_apic": "DFR",
    "x86_platform_ipi": "PLT",
}


@dataclass(frozen=True, slots=True)
class Count:
    """A line of /proc/interrupts over the window: how much it grew, and how many of these were traced.

    `exact`: the two agree, what came while the file was read counted either way. None: nothing was traced.
    """

    text: str
    counted: int
    traced: int | None
    exact: bool | None


def compare(cpu: int, before: Counters, after: Counters, frames: list[Frame] | None) -> dict[str, Count]:
    """The lines that grew on a CPU, beside how often the trace saw them between the two readings."""
    sure: dict[str, int] = {}
    perhaps: dict[str, int] = {}
    for frame in _all(frames or []):
        label = line_of(frame)
        if before.end <= frame.begin < after.begin:
            sure[label] = sure.get(label, 0) + 1
        elif before.begin <= frame.begin < after.end:
            perhaps[label] = perhaps.get(label, 0) + 1
    found = {}
    for label, line in after.lines.items():
        grown = after.interrupts[cpu].get(label, 0) - before.interrupts[cpu].get(label, 0)
        called = label if label in sure or label in perhaps else line.text  # arm64: IPI0, by what it is for
        traced = sure.get(called, 0)
        if not grown and not traced:
            continue
        if frames is None or label in NOT_INTERRUPTS or label == "NMI":
            found[label] = Count(line.text, grown, None, None)
        else:
            exact = traced <= grown <= traced + perhaps.get(called, 0)
            found[label] = Count(line.text, grown, grown if exact else traced, exact)
    return found


def line_of(frame: Frame) -> str:
    """The label in /proc/interrupts of the line that counts this interrupt."""
    if frame.kind == IRQ:
        return str(frame.key)
    return LABELS.get(frame.name, frame.name)


def _all(frames: list[Frame]) -> Iterator[Frame]:
    for frame in frames:
        if frame.kind in (VECTOR, IRQ) and not frame.again:
            yield frame
        yield from _all(frame.inner)
