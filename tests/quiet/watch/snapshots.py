"""Two readings of /proc as files of a tree: the texts that a kernel would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from quiet.host.reader import Reader
from quiet.watch.interrupt_counts import InterruptCounts
from tests.trees import machine, plant

Rows = Mapping[str, Sequence[int]]
PURPOSES = {
    "131": "PCI-MSIX-0000:01:00.0   7-edge      nvme0q7",
    "24": "IO-APIC   2-edge      rtc0",
    "LOC": "Local timer interrupts",
    "RES": "Rescheduling interrupts",
    "CAL": "Function call interrupts",
    "TLB": "TLB shootdowns",
    "NMI": "Non-maskable interrupts",
}


def interrupts(rows: Rows, cpus: Sequence[int] = range(4), purposes: Mapping[str, str] = PURPOSES) -> str:
    """As arch/x86 prints it."""
    lines = [" " * 11 + "".join(f"CPU{cpu:<8}" for cpu in cpus)]
    for label, counts in rows.items():
        lines.append(f"{label:>3}: " + "".join(f"{count:>10} " for count in counts) + "  " + purposes.get(label, label))
    return "\n".join([*lines, "ERR:          0", "MIS:          0"])


def softirqs(rows: Rows, cpus: Sequence[int] = range(4)) -> str:
    lines = [" " * 20 + "".join(f"CPU{cpu:<8}" for cpu in cpus)]
    return "\n".join([*lines, *(f"{name:>12}:" + "".join(f" {n:>10}" for n in row) for name, row in rows.items())])


def schedstat(runs: Sequence[int]) -> str:
    rows = [f"cpu{cpu} 0 0 7 7 7 7 123456 99 {count}\ndomain0 f 1 2 3" for cpu, count in enumerate(runs)]
    return "\n".join(["version 15", "timestamp 4294900000", *rows])


def stat(stolen: Sequence[int]) -> str:
    rows = [f"cpu{cpu} 100 0 100 1000 5 0 1 {ticks} 0 0" for cpu, ticks in enumerate(stolen)]
    return "\n".join(["cpu  400 0 400 4000 20 0 4 0 0 0", *rows, "intr 5 0 0", "ctxt 99"])


def put(root: Path, **texts: str) -> None:
    """Write /proc/NAME, in place: the watch keeps its files open."""
    for name, text in texts.items():
        (root / "proc" / name).write_text(text + "\n")


def tree(folder: Path, nohz_full: str = "", **texts: str) -> Path:
    """A machine with four CPUs."""
    files = machine(cpus=4) | {"sys/devices/system/cpu/nohz_full": nohz_full or "(null)"}
    root = plant(folder, files)
    put(root, **({"interrupts": interrupts({"LOC": [1] * 4})} | texts))
    return root


def counts(root: Path) -> InterruptCounts:
    return InterruptCounts(Reader(str(root)))
