"""Detect interruptions of a command from the kernel's counts, which are read between trials.

A long command is always interrupted by the timer, so an interrupt alone does not mark a trial as disturbed, unlike for
a workload of microseconds. A trial is marked if the command was preempted, had to wait for a CPU, migrated, or
had a page fault that read from the disk, or if the hypervisor took its CPU.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from cbench.external.process import ProgramEnd
from cbench.model import FAULT, MIGRATION, SWITCH, Trial, TrialCause

STOLEN, WAITED = "stolen by the host", "waited for a CPU"
WAITED_SHARE = 0.01
"""A wait shorter than this share of the trial is not a cause, because each start waits some microseconds."""
KIND_OF_LINE = re.compile(r"^.*?(?:Edge|Level|edge|level|fasteoi|None)\s+")
"""Matches the text before the device's name in the line of a numbered interrupt."""
MOST_READ = 1 << 16
DEAR_S = 0.005
"""If reading /proc/interrupts takes longer than this, interrupts are not counted per trial."""


@dataclass(frozen=True, slots=True)
class KernelCounts:
    """The content of /proc/stat and /proc/interrupts at one moment, unparsed, because reading between two trials has to
    be quick.
    """

    stat: bytes
    interrupts: bytes


class CountReader:
    """Reads KernelCounts of some CPUs. `why`: the reason why interrupt counts are missing, "" if they are available."""

    def __init__(self, cpus: Collection[int]) -> None:
        self._cpus = frozenset(cpus)
        self._stat, self._interrupts = OpenFile("/proc/stat"), OpenFile("/proc/interrupts")
        begin = time.monotonic()
        text = self._interrupts.read()
        dear = time.monotonic() - begin > DEAR_S
        self.why = "too long to be read for each trial" if dear else "" if text else "not readable here"

    def read(self) -> KernelCounts:
        """Read the present counts."""
        return KernelCounts(self._stat.read(), b"" if self.why else self._interrupts.read())

    def stolen_ms(self, before: KernelCounts, after: KernelCounts) -> int | None:
        """The increase of steal time in ms; None if the kernel does not report it."""
        ticks = [stolen(counts.stat.decode(), self._cpus) for counts in (before, after)]
        if ticks[0] is None or ticks[1] is None:
            return None
        return (ticks[1] - ticks[0]) * 1000 // os.sysconf("SC_CLK_TCK")

    def interrupts(self, before: KernelCounts, after: KernelCounts) -> dict[str, int]:
        """The number of interrupts between two snapshots, by line of /proc/interrupts."""
        return new_interrupts(before.interrupts.decode(), after.interrupts.decode(), self._cpus)

    def close(self) -> None:
        self._stat.close()
        self._interrupts.close()


class OpenFile:
    """A file of /proc that is kept open, because opening takes as long as reading. A missing file has empty content."""

    def __init__(self, path: str) -> None:
        try:
            self._fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = -1

    def read(self) -> bytes:
        parts: list[bytes] = []
        while self._fd >= 0 and (part := os.pread(self._fd, MOST_READ, sum(map(len, parts)))):
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)


def stolen(text: str, cpus: Collection[int]) -> int | None:
    """The steal time of these CPUs in /proc/stat, in ticks; None if none of them is listed."""
    names = {f"cpu{cpu}" for cpu in cpus}
    found = [fields for line in text.partition("\nintr")[0].splitlines() if (fields := line.split())[:1]]
    mine = [fields for fields in found if fields[0] in names and len(fields) > 8]
    return sum(int(fields[8]) for fields in mine) if mine else None


def new_interrupts(before: str, after: str, cpus: Collection[int]) -> dict[str, int]:
    """The increase of each line of /proc/interrupts, such as "LOC (Local timer interrupts)", on these CPUs. Lines that
    did not increase are omitted; {} if a line was added or removed.
    """
    head, *lines = after.splitlines() or [""]
    names = head.split()
    columns = [at for at, name in enumerate(names, 1) if name.removeprefix("CPU") in {str(cpu) for cpu in cpus}]
    rose: dict[str, int] = {}
    old = before.splitlines()[1:]
    if [line.partition(":")[0] for line in old] != [line.partition(":")[0] for line in lines]:
        return {}  # a line was added or removed
    for earlier, line in zip(old, lines, strict=True):
        if earlier == line:
            continue
        words, others = line.split(), earlier.split()
        numbers = [(others[at], words[at]) for at in columns if at < min(len(words), len(others))]
        count = sum(int(new) - int(was) for was, new in numbers if was.isdecimal() and new.isdecimal())
        label, described = words[0].rstrip(":"), " ".join(words[len(names) + 1 :])
        if label.isdecimal():
            described = KIND_OF_LINE.split(described)[-1]
        if count > 0:
            rose[f"{label} ({described})" if described else label] = count
    return rose


@dataclass(frozen=True, slots=True)
class StartCounts:
    """The counts of an undisturbed start, for example one migration if the program has to move to its CPU."""

    involuntary: int = 0
    migrations: int = 0
    waited_ns: int = 0


def start_counts(empty: Sequence[ProgramEnd]) -> StartCounts:
    """The lower quartile of each count over the starts of an empty program; for waits, the minimum, because on a busy
    machine most starts wait for other tasks. All counts are 0 if there are no starts.
    """
    if not empty:
        return StartCounts()
    place = len(empty) // 4
    return StartCounts(
        involuntary=sorted(each.involuntary for each in empty)[place],
        migrations=sorted(each.migrations or 0 for each in empty)[place],
        waited_ns=min(each.waited_ns or 0 for each in empty),
    )


def trial_of(
    ended: ProgramEnd,
    stolen_ms: int | None,
    interrupts: Mapping[str, int],
    counts: Mapping[str, int],
    start: StartCounts,
) -> Trial:
    """The trial with the causes of its disturbance; `counts`: events counted in addition to time."""
    known = {
        "user_us": ended.user_us,
        "system_us": ended.system_us,
        "voluntary": ended.voluntary,
        "involuntary": ended.involuntary,
        "minor_faults": ended.minor_faults,
        "major_faults": ended.major_faults,
    }
    if ended.waited_ns is not None:
        known["waited_ns"] = ended.waited_ns
    if stolen_ms is not None:
        known["stolen_ms"] = stolen_ms
    return Trial(
        value=ended.wall_ns,
        output=ended.code,
        causes=tuple(_causes(ended, known, start)),
        context_switches=ended.voluntary + ended.involuntary,
        page_faults=ended.minor_faults + ended.major_faults,
        interrupts=interrupts,
        migrated=(ended.migrations or 0) > start.migrations,
        begin=ended.begin,
        end=ended.end,
        counts={**known, **counts},
    )


def _causes(ended: ProgramEnd, known: Mapping[str, int], start: StartCounts) -> list[TrialCause]:
    waited = (ended.waited_ns or 0) - start.waited_ns
    found = [
        (SWITCH, "preempted", ended.involuntary - start.involuntary),
        (WAITED, "", int(waited > WAITED_SHARE * ended.wall_ns)),
        (MIGRATION, "", (ended.migrations or 0) - start.migrations),
        (FAULT, "from disk", ended.major_faults),
        (STOLEN, "", int(known.get("stolen_ms", 0) > 0)),
    ]
    return [TrialCause(kind, name, count) for kind, name, count in found if count > 0]
