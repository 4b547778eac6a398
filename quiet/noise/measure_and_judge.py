"""One measurement from the options as they are given to what is reported of it."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from quiet import console
from quiet.cpulist import CpuSet
from quiet.errors import QuietError, UsageError
from quiet.host.host import Host
from quiet.machine import virtualization
from quiet.noise import budgets, units
from quiet.noise.budgets import Budgets

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONGEST_S = 7 * 24 * 3600
MOST_PRIORITY = 99


@dataclass(frozen=True, slots=True)
class NoiseOptions:
    """What was asked for, checked. `seconds` 0: no measuring."""

    seconds: float
    threshold_ns: float | None
    budgets: Budgets
    timeline: str | None
    fifo: int
    trace: bool


class NoiseInterrupted(QuietError):
    """Ended by a signal; the exit code is the one that shells give it."""

    def __init__(self, number: int) -> None:
        name = signal.Signals(number).name
        super().__init__(f"ended by {name}; nothing is reported and nothing is left behind")
        self.exit_code = 128 + number


@dataclass(frozen=True, slots=True)
class Heard:
    """What is reported: for programs, for people, and whether budgets were exceeded."""

    shape: dict[str, object]
    lines: list[str]
    exceeded: bool
    timeline: str | None = None  # the file's content, if one is wanted


def options(given: Mapping[str, str], seconds: float) -> NoiseOptions:
    """Options from texts by the names of the command line; `seconds`: the default duration. Raises UsageError."""
    if "duration" in given:
        seconds = units.parse_seconds(given["duration"], "--duration")
        if 0 < seconds < 0.1 or seconds > LONGEST_S:
            raise UsageError(f"--duration {given['duration']}: from 0.1 s to seven days, or 0 for no measuring")
    threshold = units.parse_ns(given["threshold"], "--threshold") if "threshold" in given else None
    if threshold is not None and threshold > 1e9:
        raise UsageError(f"--threshold {given['threshold']}: at most 1 s")
    timeline = given.get("timeline")
    if timeline is not None:
        console.check_savable(timeline, "--timeline")
    if not seconds and (unused := [name for name in given if name != "duration"]):
        raise UsageError(f"--{unused[0]}: needs the measuring; leave it out, or give a --duration on a running machine")
    limits = budgets.parse({name.replace("-", "_"): value for name, value in given.items()})
    fifo = given.get("fifo", "0")
    if not (fifo.isascii() and fifo.isdecimal() and int(fifo) <= MOST_PRIORITY) or (fifo == "0" and "fifo" in given):
        raise UsageError(f"--fifo {fifo!r}: a real-time priority from 1 to {MOST_PRIORITY}")
    return NoiseOptions(seconds, threshold, limits, timeline, int(fifo), "no-trace" not in given)


def hear(
    cpus: CpuSet,
    asked: NoiseOptions,
    limits: Budgets,
    source: str,
    tick: Callable[[float, float], None],
    applied: frozenset[str] = frozenset(),
) -> Heard:
    """Measure this host's CPUs and judge them. `source` names them in errors; `tick` gets seconds passed and wanted.

    `applied`: the knobs that are applied to these CPUs.
    """
    from quiet.noise import measure, report, table

    wanted = measure.NoiseRequest(cpus, asked.seconds, asked.threshold_ns, asked.trace, asked.fifo, source, applied)

    def go_on(passed: float) -> bool:
        tick(passed, asked.seconds)
        return False

    with _ending_on_signals(), _without_collector():
        host = Host()
        cool = virtualization.throttled(host, cpus)
        measured = measure.measure(host, wanted, go_on)
        hot = slowed(cool, virtualization.throttled(host, cpus))
        exceeded = report.judge(measured, limits)
        page = None
        if asked.timeline is not None:
            from quiet.noise import timeline

            page = timeline.page(measured)
        lines = list(table.lines(measured, exceeded, limits))
        lines += [
            f"CPU {cpu} was slowed down for heat meanwhile, by its counter {count}"
            for cpu, count in hot.items()
            if count
        ]
        shape = {**report.shape(measured, exceeded, limits), "throttled": {str(cpu): n for cpu, n in hot.items()}}
        return Heard(shape, lines, bool(exceeded), page)


def slowed(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """How often each CPU that counts it was slowed down between two looks (surroundings.throttled)."""
    return {cpu: after[cpu] - count for cpu, count in before.items() if cpu in after}


@contextmanager
def _without_collector() -> Iterator[None]:
    """A million gaps are millions of small objects without cycles: the collector would look at them again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """The first signal that ends a command raises Interrupted, so that all is taken down; further ones do nothing."""
    ended = False

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal ended
        if not ended:
            ended = True
            raise NoiseInterrupted(number)

    wanted = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]  # nohup
    before = {number: signal.signal(number, end) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if ended else handler)  # nor while the process ends
