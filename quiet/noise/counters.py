"""Read the kernel's own counts: interrupts and softirqs by line and CPU, and stolen time.

The counts in /proc/interrupts are compared with the traced interrupts.

Reading takes time: an interrupt that occurs while the file is read may or may not be included. Each reading therefore
records its start and end, in the detector's ticks.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from quiet.cpulist import CpuSet
from quiet.host.proc import STEAL, cpu_ticks
from quiet.host.reader import Reader
from quiet.noise.call_nesting import IRQ, VECTOR, Frame, outer_and_inner

# Lines of /proc/interrupts that duplicate another line's counts or do not count interrupts.
NOT_INTERRUPTS = ("MCP", "PMI", "TLB", "RTR", "ERR", "MIS")
TIMERS = ("arch_timer",)  # the counterpart of LOC if the timer is a numbered interrupt (arm64)
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
class Counters:
    """One reading. `lines`: the description of each label; `interrupts`, `softirqs`: the counts per CPU and label."""

    begin: int
    end: int
    lines: dict[str, str]
    interrupts: dict[int, dict[str, int]]
    softirqs: dict[int, dict[str, int]]
    stolen: dict[int, int]  # per CPU, in units of 1/USER_HZ s


def interrupts(text: str) -> tuple[dict[str, str], dict[int, dict[str, int]]]:
    """The purposes of the lines of /proc/interrupts, by label ("LOC", "27"), and the counts per CPU and label.

    /proc/softirqs has the same format, without purposes.
    """
    rows = text.splitlines()
    cpus = [int(word[3:]) for word in rows[0].split()] if rows else []
    lines: dict[str, str] = {}
    counts: dict[int, dict[str, int]] = {cpu: {} for cpu in cpus}
    for row in rows[1:]:
        label, _, rest = row.partition(":")
        label = label.strip()
        words = rest.split(None, len(cpus))
        numbers = words[: len(cpus)]
        if len(numbers) < len(cpus) or not all(word.isdecimal() for word in numbers):
            continue  # ERR and MIS count for the whole machine, not for a CPU
        lines[label] = purpose(words[len(cpus)] if len(words) > len(cpus) else "")
        for cpu, word in zip(cpus, numbers, strict=True):
            counts[cpu][label] = int(word)
    return lines, counts


def purpose(text: str) -> str:
    """The purpose of a line: the last part of the text after its counts.

    For "PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0", this is "virtio1-req.0".
    """
    return re.split(r"\s{2,}", text.strip())[-1]


def stolen(text: str) -> dict[int, int]:
    """The stolen time of each CPU (the field "steal" of /proc/stat), in units of 1/USER_HZ s."""
    rows = cpu_ticks(text).items()
    return {int(name[3:]): ticks[STEAL] for name, ticks in rows if name != "cpu" and len(ticks) > STEAL}


def read(reader: Reader, cpus: CpuSet, now: Callable[[], int]) -> Counters:
    """Read all counts of these CPUs.

    The recorded start and end enclose only the read of /proc/interrupts, so they are close together. `now` returns the
    time in ticks.
    """
    soft = interrupts(reader.text("/proc/softirqs") or "")[1]
    away = stolen(reader.text("/proc/stat") or "")
    begin = now()
    text = reader.text("/proc/interrupts") or ""
    end = now()
    lines, counts = interrupts(text)

    def ours(table: dict[int, dict[str, int]]) -> dict[int, dict[str, int]]:
        return {cpu: table.get(cpu, {}) for cpu in cpus}

    return Counters(begin, end, lines, ours(counts), ours(soft), {c: away[c] for c in cpus if c in away})


@dataclass(frozen=True, slots=True)
class Count:
    """A line of /proc/interrupts over the window: its increase, and the number of these interrupts that were traced.

    `exact`: whether the two numbers agree, apart from interrupts during the reads. `traced` and `exact` are None for a
    line that cannot be compared with the trace.
    """

    text: str
    counted: int
    traced: int | None
    exact: bool | None


def compare(cpu: int, before: Counters, after: Counters, frames: list[Frame] | None) -> dict[str, Count]:
    """The lines with counted or traced interrupts on a CPU between the two readings.

    `frames`: None without a complete trace.
    """
    interrupts = [frame for frame in outer_and_inner(frames or []) if frame.kind in (VECTOR, IRQ)]
    sure = Counter(line_of(frame) for frame in interrupts if before.end <= frame.begin < after.begin)
    perhaps = Counter(line_of(frame) for frame in interrupts if before.begin <= frame.begin < after.end) - sure
    counts = {}
    for label, text in after.lines.items():
        grown = after.interrupts[cpu].get(label, 0) - before.interrupts[cpu].get(label, 0)
        called = label if label in sure or label in perhaps else text  # arm64: IPI0, by its purpose
        traced = sure[called]
        if not grown and not traced:
            continue
        if frames is None or label in NOT_INTERRUPTS or label == "NMI":
            counts[label] = Count(text, grown, None, None)
        else:
            exact = traced <= grown <= traced + perhaps[called]
            counts[label] = Count(text, grown, grown if exact else traced, exact)
    return counts


def line_of(frame: Frame) -> str:
    """The label of the line in /proc/interrupts that counts this interrupt."""
    if frame.kind == IRQ:
        return str(frame.key)
    return LABELS.get(frame.name, frame.name)
