"""What the kernel counts by itself: interrupts and softirqs by line and CPU, stolen time, firmware interruptions.

Reading is not one moment: a count that changes while the file is read may be in or not. Each reading therefore says
from when to when it lasted, in the detector's ticks.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from dataclasses import dataclass

from quiet.cpulist import CpuSet
from quiet.host.proc import STEAL, cpu_ticks
from quiet.host.reader import Reader

MSR_SMI_COUNT = 0x34  # Intel SDM volume 4, "MSR_SMI_COUNT"; AMD has none


@dataclass(frozen=True, slots=True)
class InterruptLine:
    """A line of /proc/interrupts: its label ("LOC", "27"), and what it is for."""

    label: str
    text: str


@dataclass(frozen=True, slots=True)
class Counters:
    """One reading. `interrupts` and `softirqs`: per CPU, per label."""

    begin: int
    end: int
    lines: dict[str, InterruptLine]
    interrupts: dict[int, dict[str, int]]
    softirqs: dict[int, dict[str, int]]
    stolen: dict[int, int]  # USER_HZ, per CPU
    firmware: dict[int, int]  # SMI count per CPU, where it can be read


def interrupts(text: str) -> tuple[dict[str, InterruptLine], dict[int, dict[str, int]]]:
    """The lines of /proc/interrupts, and per CPU of its header the counts by label."""
    rows = text.splitlines()
    cpus = [int(word[3:]) for word in rows[0].split()] if rows else []
    lines: dict[str, InterruptLine] = {}
    counts: dict[int, dict[str, int]] = {cpu: {} for cpu in cpus}
    for row in rows[1:]:
        label, _, rest = row.partition(":")
        label = label.strip()
        words = rest.split(None, len(cpus))
        numbers = words[: len(cpus)]
        if len(numbers) < len(cpus) or not all(word.isdecimal() for word in numbers):
            continue  # ERR and MIS are counted for the machine, not for a CPU
        text = words[len(cpus)].strip() if len(words) > len(cpus) else ""
        lines[label] = InterruptLine(label, re.split(r"\s{2,}", text)[-1])
        for cpu, word in zip(cpus, numbers, strict=True):
            counts[cpu][label] = int(word)
    return lines, counts


def softirqs(text: str) -> dict[int, dict[str, int]]:
    """Per CPU the counts of /proc/softirqs by name."""
    return interrupts(text)[1]


def stolen(text: str) -> dict[int, int]:
    """Per CPU the "steal" of /proc/stat, in USER_HZ."""
    rows = cpu_ticks(text).items()
    return {int(name[3:]): ticks[STEAL] for name, ticks in rows if name != "cpu" and len(ticks) > STEAL}


def firmware(reader: Reader, cpus: CpuSet) -> dict[int, int]:
    """SMI counts, of the CPUs whose MSRs can be read (Intel, root, the msr module loaded)."""
    found = {cpu: reader.at(f"/dev/cpu/{cpu}/msr", MSR_SMI_COUNT, 8) for cpu in cpus}
    return {cpu: struct.unpack("<Q", raw)[0] for cpu, raw in found.items() if raw is not None}


def read(reader: Reader, cpus: CpuSet, now: Callable[[], int]) -> Counters:
    """Read all of them for these CPUs; the interrupts in the middle, closely timed."""
    soft = softirqs(reader.text("/proc/softirqs") or "")
    away = stolen(reader.text("/proc/stat") or "")
    smi = firmware(reader, cpus)
    begin = now()
    text = reader.text("/proc/interrupts") or ""
    end = now()
    lines, counts = interrupts(text)

    def ours(table: dict[int, dict[str, int]]) -> dict[int, dict[str, int]]:
        return {cpu: table.get(cpu, {}) for cpu in cpus}

    return Counters(begin, end, lines, ours(counts), ours(soft), {c: away[c] for c in cpus if c in away}, smi)
