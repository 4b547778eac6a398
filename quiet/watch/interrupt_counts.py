"""Count the interruptions of CPUs since the last check, from counters that any CPU can read without IPIs or privileges.

/proc/interrupts, softirqs, schedstat and stat print per-CPU variables of the kernel (kernel/irq/proc.c,
arch/x86/kernel/irq.c, fs/proc/softirqs.c, kernel/sched/stats.c, fs/proc/stat.c): the reading CPU loads the memory of
the other CPUs, which execute nothing for it. Registers such as the SMI count, and performance counters of another CPU,
are omitted, because reading them takes an IPI.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quiet.cpulist import CpuSet
from quiet.errors import QuietError
from quiet.host.proc import STEAL
from quiet.host.reader import Reader
from quiet.noise.attribute import HOST, HYPERVISOR, Cause
from quiet.noise.call_nesting import SOFTIRQ, THREAD
from quiet.noise.counters import purpose
from quiet.noise.names import LOCAL_TIMER, SOFTIRQ_LINE, label, line_causes

INTERRUPTS, SOFTIRQS, SCHEDSTAT, STAT = "/proc/interrupts", "/proc/softirqs", "/proc/schedstat", "/proc/stat"
SWITCHES = Cause(THREAD, "task switch")  # a task started to run, possibly the watched CPU's own task after a sleep
STOLEN = Cause(HOST, HYPERVISOR)  # counted in USER_HZ, ticks of 10 ms
TICK = frozenset({LOCAL_TIMER, *(Cause(SOFTIRQ, name) for name in ("TIMER", "SCHED", "RCU", "HRTIMER"))})
"""The causes that accompany the tick, on CPUs with a tick."""

_RUNS = 9  # index in the line of a CPU in /proc/schedstat (Documentation/scheduler/sched-stats.rst, since version 15)
_WRAP, _HALF = 1 << 32, 1 << 31  # the interrupt counters are unsigned int
_SIZE = 1 << 16


class Interruption(NamedTuple):
    """A cause, and the number of its interruptions of a CPU since the last check."""

    cpu: int
    cause: Cause
    times: int


class ProcTable(NamedTuple):
    """The content of a file: the position of each CPU's column (empty if each CPU has a row), and the rows by label."""

    columns: dict[int, int]
    rows: dict[str, bytes]


class InterruptCounts:
    """The counters of a host, with their values at the last check. `missing`: the files that cannot be read.

    Raises QuietError if /proc/interrupts cannot be read.
    """

    def __init__(self, reader: Reader) -> None:
        self.missing: list[str] = []
        self._files: dict[str, int] = {}
        self._buffer = bytearray(_SIZE)
        for path in (INTERRUPTS, SOFTIRQS, SCHEDSTAT, STAT):
            try:
                self._files[path] = reader.open(path, os.O_RDONLY)
            except OSError as error:
                self.missing.append(path)
                if path == INTERRUPTS:
                    raise QuietError(f"interruptions cannot be counted: {path}: {error.strerror}") from None
        self._last = {path: self._read(path) for path in self._files}

    def close(self) -> None:
        """Close the files, which stay open between two checks."""
        for fd in self._files.values():
            os.close(fd)
        self._files = {}

    def look(self, cpus: CpuSet) -> list[Interruption]:
        """The interruptions of these CPUs since the last check. Raises OSError if a file cannot be read."""
        found: list[Interruption] = []
        grown: dict[int, dict[str, float]] = {}
        purposes: dict[str, str] = {}
        for path in self._files:
            before, now = self._last[path], self._read(path)
            self._last[path] = now
            if path in (SCHEDSTAT, STAT):
                place, cause = (_RUNS, SWITCHES) if path == SCHEDSTAT else (STEAL + 1, STOLEN)
                found += _of_rows(before, now, cpus, place, cause)
                continue
            for name, cpu, count, text in _of_columns(before, now, cpus):
                line = name if path == INTERRUPTS else SOFTIRQ_LINE + name
                grown.setdefault(cpu, {})[line] = count
                purposes[line] = text
        for cpu, lines in grown.items():
            found += (Interruption(cpu, cause, round(n)) for cause, n in line_causes(lines, purposes) if n)
        return found

    def _read(self, path: str) -> ProcTable:
        fd, buffer, size = self._files[path], self._buffer, 0
        os.lseek(fd, 0, os.SEEK_SET)
        while count := os.readv(fd, [memoryview(buffer)[size:]]):
            size += count
            if size == len(buffer):
                buffer += bytes(len(buffer))
        lines = bytes(memoryview(buffer)[:size]).split(b"\n")
        if path in (SCHEDSTAT, STAT):
            return ProcTable({}, {line.partition(b" ")[0].decode(): line for line in lines if line.startswith(b"cpu")})
        columns = {_number(word[3:]): at for at, word in enumerate(lines[0].split())}
        parts = (line.partition(b":") for line in lines[1:])
        return ProcTable(columns, {label.decode("ascii", "replace").strip(): rest for label, _, rest in parts})


def called(cause: Cause) -> str:
    """The text to display for a cause, with its unit if it does not count interruptions."""
    return f"{label(cause)} (in ticks of 10 ms)" if cause == STOLEN else label(cause)


def growth(before: int, now: int) -> int:
    """The increase of a 32-bit counter, which may have wrapped, or restarted with a new descriptor of the interrupt."""
    if now >= before:
        return now - before
    wrapped = now + _WRAP - before
    return wrapped if wrapped < _HALF else now


def _of_columns(before: ProcTable, now: ProcTable, cpus: CpuSet) -> Iterator[tuple[str, int, int, str]]:
    """Yield the label, CPU, increase and purpose of each line whose count increased.

    A new line counts from zero. The counts of a CPU that has come online are from before it went offline, so they are
    omitted once.
    """
    known = sorted(cpu for cpu in cpus if cpu in before.columns and cpu in now.columns)
    same = before.columns == now.columns
    for name, row in now.rows.items():
        old = before.rows.get(name)
        if same and old == row:
            continue
        words = row.split(None, len(now.columns))
        old_words = old.split(None, len(before.columns)) if old is not None else []
        if len(words) < len(now.columns) or (old_words and len(old_words) < len(before.columns)):
            continue  # ERR and MIS count for the whole machine, not for a CPU
        for cpu in known:
            first = _number(old_words[before.columns[cpu]]) if old_words else 0
            if count := growth(first, _number(words[now.columns[cpu]])):
                text = words[len(now.columns)] if len(words) > len(now.columns) else b""
                yield name, cpu, count, purpose(text.decode("utf-8", "replace"))


def _of_rows(
    before: ProcTable, now: ProcTable, cpus: Iterable[int], place: int, cause: Cause
) -> Iterator[Interruption]:
    """Yield interruptions from a file with a row per CPU.

    The counters have 64 bits; steal time may decrease slightly.
    """
    for cpu in sorted(cpus):
        row, old = now.rows.get(f"cpu{cpu}"), before.rows.get(f"cpu{cpu}")
        if row is None or old is None or row == old:
            continue
        words, old_words = row.split(), old.split()
        if min(len(words), len(old_words)) > place:
            count = _number(words[place]) - _number(old_words[place])
            if count > 0:
                yield Interruption(cpu, cause, count)


def _number(word: bytes) -> int:
    return int(word) if word.isdigit() else 0
