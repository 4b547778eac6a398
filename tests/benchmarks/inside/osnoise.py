"""The events of the kernel's osnoise tracer: with its own loop off, they name the interruptions of any task on the CPU.

Documentation/trace/osnoise-tracer.rst: an interruption is one event, made when it is over, and its name is in it.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

TRACING = Path("/sys/kernel/tracing")
INSTANCE = TRACING / "instances/osnoise"
EVENTS = ("irq_noise", "softirq_noise", "thread_noise", "nmi_noise")
LINE = re.compile(r"\[\d+\]\s+\S+\s+(\d+): (\w+)_noise:\s+(.*?)start ")


class Noise(NamedTuple):
    """One event: its end in ticks, its class, and its name ("" without one)."""

    time: int
    kind: str
    name: str


def offered() -> bool:
    """Whether this kernel has the tracer."""
    return "osnoise" in (TRACING / "available_tracers").read_text().split()


class Tracer:
    """`with Tracer(cpu) as tracer: ...; tracer.events()`."""

    def __init__(self, cpu: int, *, tracing: bool = True) -> None:
        """`tracing`: have it trace, without its own loop. Else its events come when another program has it trace."""
        self.cpu, self.tracing = cpu, tracing

    def __enter__(self) -> Tracer:
        if self.tracing:
            (TRACING / "osnoise/options").write_text("NO_OSNOISE_WORKLOAD")
            (TRACING / "osnoise/cpus").write_text(f"{self.cpu}")
        INSTANCE.mkdir()
        self._write("trace_clock", "x86-tsc")
        self._write("tracing_cpumask", f"{1 << self.cpu:x}")
        self._write(f"per_cpu/cpu{self.cpu}/buffer_size_kb", "16384")
        for name in EVENTS:
            self._write(f"events/osnoise/{name}/enable", "1")
        if self.tracing:
            self._write("current_tracer", "osnoise")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        if self.tracing:
            self._write("current_tracer", "nop")
        INSTANCE.rmdir()
        if self.tracing:
            (TRACING / "osnoise/options").write_text("OSNOISE_WORKLOAD")

    def _write(self, name: str, text: str) -> None:
        (INSTANCE / name).write_text(text)

    def stop(self) -> None:
        """Trace no longer."""
        self._write("tracing_on", "0")

    def events(self) -> list[Noise]:
        """All that was traced on the CPU, in order."""
        text = (INSTANCE / f"per_cpu/cpu{self.cpu}/trace").read_text(errors="replace")
        return [Noise(int(time), kind, name.strip()) for time, kind, name in LINE.findall(text)]


def counted(events: list[Noise], begin: int, end: int, own: frozenset[int]) -> Counter[tuple[str, str]]:
    """How often each came within a time. `own`: tasks that are not noise: the one that is interrupted, and idle."""
    found: Counter[tuple[str, str]] = Counter()
    for each in events:
        name, _, number = each.name.rpartition(":")
        if begin <= each.time < end and not (each.kind == "thread" and int(number) in own):
            found[each.kind, each.name if each.kind == "thread" else name] += 1
    return found
