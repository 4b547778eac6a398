"""What `quiet apply` and `quiet restore` do with their time: reads and writes of the host, the journal, and the rest.

    python tests/benchmarks/apply_cost.py [--live]

On a synthetic machine of 1,024 CPUs and 10,000 interrupts, in files; with --live, which needs root, on this very
machine: what the lab's guests are for. Every setting is restored.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from quiet.host.host import Host
from quiet.settings.apply import apply
from quiet.settings.journal_writer import Journal
from quiet.settings.profile import load
from quiet.settings.restore import restore
from tests.trees import cpufreq, machine, plant, task

READS = ("text", "names", "exists", "writable", "held")
SHARED = "/dev/shm"  # as /run is and /sys: nothing waits for a disk
WRITES = ("write", "mkdir", "rmdir", "set_affinity", "signal", "run", "hold", "release")


class Clock:
    """Seconds and calls by what they were for; calls inside others are the outer one's."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}
        self.inside = False

    def wrap(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **options: Any) -> Any:
            if self.inside:
                return call(*args, **options)
            self.inside = True
            start = time.perf_counter()
            try:
                return call(*args, **options)
            finally:
                self.inside = False
                self.seconds[what] = self.seconds.get(what, 0) + time.perf_counter() - start
                self.calls[what] = self.calls.get(what, 0) + 1

        return timed


@contextmanager
def watched() -> Iterator[Clock]:
    clock = Clock()
    places = [(Host, name, "reads") for name in READS] + [(Host, name, "writes") for name in WRITES]
    found = [(owner, name, what, getattr(owner, name)) for owner, name, what in [*places, (Journal, "_add", "journal")]]
    for owner, name, what, call in found:
        setattr(owner, name, clock.wrap(what, call))
    try:
        yield clock
    finally:
        for owner, name, _, call in found:
            setattr(owner, name, call)


def show(title: str, work: Callable[[], object]) -> object:
    with watched() as clock:
        start = time.perf_counter()
        done = work()
        total = time.perf_counter() - start
    rest = total - sum(clock.seconds.values())
    parts = [f"{clock.calls[what]:,} {what} {clock.seconds[what]:.3f} s" for what in clock.seconds]
    print(f"{title}: {total:.3f} s: {', '.join(parts)}, quiet itself {rest:.3f} s")
    return done


def main() -> None:
    with tempfile.TemporaryDirectory(dir=SHARED if os.path.isdir(SHARED) else None) as folder:
        root = "/"
        if "--live" not in sys.argv:
            root = folder
            files = machine(cpus=1024, threads=2, nodes=8, irqs=10000) | cpufreq(1024, "acpi-cpufreq")
            for tid in range(1000):
                files |= task(2000 + tid, "kworker", "0-1023", kernel=True, bound=True)
            plant(Path(folder), files)
            os.sync()
        host, profile = Host(root), load("bench")
        print(f"{os.cpu_count() if root == '/' else 1024} CPUs")
        show("apply ", lambda: apply(host, profile))
        show("again ", lambda: apply(host, profile))
        outcome = show("restore", lambda: restore(host))
        if not outcome.complete:  # type: ignore[attr-defined]
            sys.exit(f"not restored: {outcome}")


if __name__ == "__main__":
    main()
