"""Write metrics for the textfile collector of Prometheus's node_exporter, in text exposition format 0.0.4.

The number of series is bounded: causes beyond the limit count as one, named "other".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quiet.console import save
from quiet.noise.attribute import Cause
from quiet.watch.interrupt_counts import Interruption, called

MOST_CAUSES = 100
OTHER = ("other", "other")  # kind and cause


class WatchState(NamedTuple):
    """The applied profile ("" if it was restored), and the number of its settings that have drifted."""

    profile: str
    drifts: int


class Textfile:
    """A metrics file, which each write() replaces completely."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._counts: dict[tuple[int, str, str], int] = {}
        self._labels: dict[Cause, tuple[str, str]] = {}

    def add(self, items: Iterable[Interruption]) -> None:
        """Count new interruptions."""
        for cpu, cause, count in items:
            if cause not in self._labels:
                full = len(self._labels) >= MOST_CAUSES
                self._labels[cause] = OTHER if full else (cause.kind, called(cause))
            key = (cpu, *self._labels[cause])
            self._counts[key] = self._counts.get(key, 0) + count

    def write(self, watching: bool, cpu_s: float, applied: WatchState | None) -> None:
        """Write the file. Raises QuietError if that fails; then the old file is kept."""
        save(self.path, "".join(f"{line}\n" for line in self._lines(watching, cpu_s, applied)), "--textfile")

    def _lines(self, watching: bool, cpu_s: float, applied: WatchState | None) -> Iterator[str]:
        name = "quiet_interruptions_total"
        yield from _head(name, "counter", "Interruptions of a watched CPU by cause since the watch began.")
        for (cpu, kind, cause), count in sorted(self._counts.items()):
            yield f'{name}{{cpu="{cpu}",kind="{_escaped(kind)}",cause="{_escaped(cause)}"}} {count}'
        name = "quiet_watch_cpu_seconds_total"
        yield from _head(name, "counter", "CPU time that the watch has used.")
        yield f"{name} {cpu_s:.6f}"
        yield from _head("quiet_watching", "gauge", "Whether the watch runs; 0 after its end.")
        yield f"quiet_watching {int(watching)}"
        if applied is not None:
            yield from _head("quiet_applied", "gauge", "Whether a profile is applied.")
            yield f"quiet_applied {int(bool(applied.profile))}"
            yield from _head("quiet_drifts", "gauge", "Settings of the applied profile that have drifted.")
            yield f"quiet_drifts {applied.drifts}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
