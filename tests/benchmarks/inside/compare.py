"""Runs in the guest: one planted disturbance as osnoise, `quiet noise` and `rtla osnoise` count it.

First at the same time: the tracer without its own loop, around quiet's detector, on one CPU. What the two count within
the detector's window is compared by name. Then one after the other: `rtla osnoise` with its own loop, and `quiet`.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[3]))

from quiet.host.host import Host
from quiet.noise import measure as measuring
from quiet.noise.attribute import HOST
from quiet.noise.call_nesting import IRQ, NMI, SOFTIRQ, THREAD, VECTOR, Frame, TraceEvent, build
from quiet.noise.measure import NoiseMeasurement, NoiseRequest
from quiet.noise.names import label
from quiet.noise.report import by_cost
from tests.benchmarks.inside import osnoise, planted

CPU = 3
SECONDS = 30.0  # the disturbance takes 10, or more where the emulator's own machine is busy
THRESHOLD_NS = 50_000.0  # what counts is what the kernel did; in an emulator there are a million gaps below
SETTLED_S = 2.0
"""rtla's thread is there before its samples are counted: one takes a second."""
SHARE = Path("/run/quiet-lab/out")
CLASSES = {VECTOR: "irq", IRQ: "irq", SOFTIRQ: "softirq", THREAD: "thread", NMI: "nmi"}
Counts = Counter[tuple[str, str]]


class Recorder:
    """Keeps the frames that quiet makes of the kernel's events; everything else is as ever."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []

    def __call__(self, events: Iterable[TraceEvent], begin: int, end: int, own: frozenset[int]) -> list[Frame]:
        self.frames = build(events, begin, end, own)
        return self.frames

    def counted(self, begin: int, end: int) -> Counts:
        """The same as `osnoise.counted` by quiet's frames, which are nested: each is counted where it ends."""
        found: Counts = Counter()
        waiting = list(self.frames)
        while waiting:
            frame = waiting.pop()
            waiting += frame.inner
            if frame.kind in CLASSES and begin <= frame.end < end:
                found[CLASSES[frame.kind], _name(frame)] += 1
        return found


def _name(frame: Frame) -> str:
    if frame.kind == THREAD:
        return f"{frame.name}:{frame.pid}"
    if frame.kind == NMI:
        return ""
    return frame.name.partition(" ")[2] if frame.kind == IRQ else frame.name


def noise(waiting: planted.Waiting) -> tuple[NoiseMeasurement, Recorder]:
    recorder = Recorder()
    with mock.patch.object(measuring, "build", recorder):
        measured = measuring.measure(
            Host(), NoiseRequest(frozenset({CPU}), SECONDS, THRESHOLD_NS), lambda _: waiting.go()
        )
    check(waiting)
    return measured, recorder


def check(waiting: planted.Waiting) -> None:
    took = waiting.took()
    if took is None or took > SECONDS - 1:
        print(f"the disturbance was not done whole within the measured time ({took} s)")


def at_once() -> None:
    waiting = planted.Waiting(CPU, SHARE)
    with osnoise.Tracer(CPU) as tracer:
        measured, recorder = noise(waiting)
        tracer.stop()
        events = tracer.events()
    watched = measured.cpus[CPU].watched
    theirs = osnoise.counted(events, watched.begin, watched.end, frozenset({0, watched.pid}))
    ours = recorder.counted(watched.begin, watched.end)
    print(f"at once, {measured.seconds:.0f} s: the osnoise tracer around quiet's detector")
    by_name(theirs, ours, "osnoise")
    differing = sum(theirs[key] != ours[key] for key in {*theirs, *ours})
    print(f"{len({*theirs, *ours})} causes, {differing} counted differently")
    causes(measured)


def by_name(theirs: Counts, ours: Counts, what: str) -> None:
    print(f"{'class':<8} {'name':<34} {what:>8} {'quiet':>8}")
    for kind, name in sorted({*theirs, *ours}, key=lambda key: (key[0], -theirs[key], key[1])):
        one, other = theirs[kind, name], ours[kind, name]
        print(f"{kind:<8} {name or '(no name)':<34} {one:>8} {other:>8}{'' if one == other else '  differs'}")


def causes(measured: NoiseMeasurement) -> None:
    print("as quiet reports it, by what each was for:")
    for cause, total in by_cost(measured.cpus[CPU].account.totals):
        print(f"  {total.count:>6} x {label(cause)}")


def in_turn() -> None:
    if not shutil.which("rtla"):
        print("rtla is not installed (Debian: rtla)")
        return
    with osnoise.Tracer(CPU, tracing=False) as tracer:
        theirs = rtla()
        names = osnoise.counted(tracer.events(), 0, 1 << 64, frozenset({0}))
    if not theirs:
        return
    measured, recorder = noise(planted.Waiting(CPU, SHARE))
    watched = measured.cpus[CPU].watched
    named = recorder.counted(watched.begin, watched.end)
    ours: Counter[str] = Counter()
    for (kind, _), count in named.items():
        ours[kind] += count
    ours["hw"] = sum(t.count for cause, t in measured.cpus[CPU].account.totals.items() if cause.kind == HOST)
    print(f"in turn, {SECONDS:.0f} s each: rtla osnoise with its own loop, then quiet")
    print(f"{'class':<8} {'rtla':>8} {'quiet':>8}")
    for kind in ("nmi", "irq", "softirq", "thread", "hw"):
        print(f"{kind:<8} {theirs.get(kind, 0):>8} {ours[kind]:>8}")
    print("by name, from the tracer's events while rtla ran:")
    by_name(_without_pids(names), _without_pids(named), "rtla")


def _without_pids(counts: Counts) -> Counts:
    """One after the other, the same task has another number."""
    found: Counts = Counter()
    for (kind, name), count in counts.items():
        found[kind, name.rpartition(":")[0] if kind == "thread" else name] += count
    return found


def rtla() -> dict[str, int]:
    """The counts of `rtla osnoise` for the same disturbance: HW, NMI, IRQ, softirq and thread."""
    waiting = planted.Waiting(CPU, SHARE)
    command = ["rtla", "osnoise", "top", "-q", "-c", str(CPU), "-d", f"{SECONDS:.0f}s"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        while process.poll() is None and _has_run(f"osnoise/{CPU}") < SETTLED_S:
            time.sleep(0.1)
        waiting.go()
        text = process.communicate()[0]
    check(waiting)
    found = re.search(rf"^\s*{CPU} #\d+\s+(.*)$", text, re.MULTILINE)
    if not found:
        print(f"rtla osnoise said: {text.strip()[-400:]}")
        return {}
    return dict(zip(("hw", "nmi", "irq", "softirq", "thread"), map(int, found[1].split()[-5:]), strict=False))


def _has_run(comm: str) -> float:
    """Seconds that the task of this name has had a CPU; 0 where there is none."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        if _comm(path) == comm:
            with contextlib.suppress(OSError):
                return int((path.parent / "schedstat").read_text().split()[0]) / 1e9
    return 0.0


def _comm(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def main(arguments: Sequence[str]) -> None:
    if not os.path.ismount(osnoise.TRACING):
        subprocess.run(["mount", "-t", "tracefs", "nodev", str(osnoise.TRACING)], check=True)
    if not osnoise.offered():
        print("this kernel has no osnoise tracer")
        return
    planted.aim_devices(CPU)
    if "turn" not in arguments:
        at_once()
    if "once" not in arguments:
        in_turn()


if __name__ == "__main__":
    main(sys.argv[1:])
