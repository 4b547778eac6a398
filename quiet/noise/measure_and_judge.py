"""Check the options of `quiet noise`, measure, and make the report."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, NamedTuple

from quiet import console
from quiet.cpulist import CpuSet
from quiet.errors import QuietError, UsageError
from quiet.host.host import Host
from quiet.machine import virtualization
from quiet.noise import budgets
from quiet.noise.budgets import Budgets

if TYPE_CHECKING:
    from quiet.noise.report import NoiseReport

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LONGEST_S = 7 * 24 * 3600
MOST_PRIORITY = 99
SHORTEST_PROOF_S, LONGEST_PROOF_S = 1, 3600


@dataclass(frozen=True, slots=True)
class NoiseOptions:
    """The checked options of `quiet noise`.

    `seconds` 0: do not measure; `threshold_ns` None: the detector's default; `timeline`: the HTML page to write;
    `fifo`: SCHED_FIFO priority, 0: an ordinary task.
    """

    seconds: float
    threshold_ns: float | None
    budgets: Budgets
    timeline: str | None
    fifo: int
    trace: bool
    prove_s: float = 0.0  # 0: no proof requested


class NoiseInterrupted(QuietError):
    """A signal ended the measurement; the exit code is 128 plus the signal's number, as in shells."""

    def __init__(self, number: int) -> None:
        name = signal.Signals(number).name
        super().__init__(f"ended by {name}; no interruptions are reported and nothing is left behind")
        self.exit_code = 128 + number


class NoiseTexts(NamedTuple):
    """The options of a measurement as text from the command line; None: not given."""

    duration: str | None = None
    threshold: str | None = None
    max_lost: str | None = None
    max_gap: str | None = None
    max_interrupts: str | None = None
    timeline: str | None = None
    fifo: str | None = None
    no_trace: str | None = None
    prove: str | None = None
    wake: str | None = None
    period: str | None = None
    max_latency: str | None = None
    stop_above: str | None = None
    save_trace: str | None = None


WAKE_ONLY = ("period", "max_latency", "stop_above", "save_trace")


def options(texts: NoiseTexts, seconds: float) -> NoiseOptions:
    """Check the options and return their values; `seconds`: the default duration.

    Raises UsageError, which names the wrong option.
    """
    for name in WAKE_ONLY:
        if getattr(texts, name) is not None:
            gaps = "; --max-gap limits gaps" if name == "max_latency" else ""
            raise UsageError(f"--{name.replace('_', '-')} applies to wake-ups; add --wake, or omit this option{gaps}")
    seconds = duration(texts.duration, seconds)
    threshold = None if texts.threshold is None else budgets.parse_ns(texts.threshold, "--threshold")
    if threshold is not None and threshold > 1e9:
        raise UsageError(f"--threshold {texts.threshold}: must be at most 1 s")
    if texts.timeline is not None:
        console.check_savable(texts.timeline, "--timeline")
    given = [name.replace("_", "-") for name, text in texts._asdict().items() if text is not None]
    if not seconds and (unused := [name for name in given if name != "duration"]):
        raise UsageError(
            f"--{unused[0]}: needs a measurement; omit it, or give a --duration above 0 on a running machine"
        )
    limits = budgets.parse(texts._asdict())
    prove = 0.0 if texts.prove is None else budgets.parse_seconds(texts.prove, "--prove")
    if texts.prove is not None and not SHORTEST_PROOF_S <= prove <= LONGEST_PROOF_S:
        raise UsageError(f"--prove {texts.prove}: must be from {SHORTEST_PROOF_S} s to {LONGEST_PROOF_S} s")
    fifo = priority(texts.fifo)
    return NoiseOptions(seconds, threshold, limits, texts.timeline, fifo, texts.no_trace is None, prove)


def duration(text: str | None, seconds: float) -> float:
    """The value of --duration in seconds; `seconds` if not given. Raises UsageError unless the value is 0 (no
    measurement) or from 0.1 s to seven days.
    """
    if text is None:
        return seconds
    seconds = budgets.parse_seconds(text, "--duration")
    if 0 < seconds < 0.1 or seconds > LONGEST_S:
        raise UsageError(f"--duration {text}: must be 0 or from 0.1 s to seven days")
    return seconds


def priority(text: str | None) -> int:
    """The value of --fifo as a number; 0 if not given. Raises UsageError for anything but a real-time priority."""
    if text is None:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) <= 2 and 1 <= int(text) <= MOST_PRIORITY):
        raise UsageError(f"--fifo {text!r}: must be a real-time priority from 1 to {MOST_PRIORITY}")
    return int(text)


@dataclass(frozen=True, slots=True)
class NoiseResult:
    """The report of a measurement, and the HTML page of its timeline if requested."""

    report: NoiseReport
    timeline: str | None = None


def measure_and_judge(
    cpus: CpuSet,
    options: NoiseOptions,
    limits: Budgets,
    source: str,
    progress: Callable[[float, float], None],
    applied: frozenset[str] = frozenset(),
) -> NoiseResult:
    """Measure CPUs of this host and judge them.

    `source`: the option or file that names the CPUs, for errors; `progress` is called with the elapsed and the
    requested seconds; `applied`: the knobs that are applied to these CPUs. Raises NoiseInterrupted after a
    signal.
    """
    from quiet.noise import measure, prove, report

    request = measure.NoiseRequest(
        cpus, options.seconds, options.threshold_ns, options.trace, options.fifo, source, applied
    )

    def go_on(passed: float) -> bool:
        progress(passed, options.seconds)
        return False

    with _ending_on_signals(), _without_collector():
        host = Host()
        if options.prove_s:
            prove.check(host)
        before = virtualization.throttled(host, cpus)
        measured = measure.measure(host, request, go_on)
        throttled = slowed(before, virtualization.throttled(host, cpus))
        proof = prove.prove(host, cpus, options.prove_s) if options.prove_s else None
        page = None
        if options.timeline is not None:
            from quiet.noise import timeline

            page = timeline.page(measured)
        return NoiseResult(report.make(measured, limits, throttled, proof), page)


def slowed(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """How often each CPU was throttled between two reads (virtualization.throttled); CPUs without a count
    are absent.
    """
    return {cpu: after[cpu] - count for cpu, count in before.items() if cpu in after}


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause the garbage collector: a million gaps consist of millions of small objects without reference cycles."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@contextmanager
def _ending_on_signals() -> Iterator[None]:
    """Raise NoiseInterrupted at the first signal that ends a command, so that traces are removed; ignore
    further ones.
    """
    ended = False

    def end(number: int, _frame: FrameType | None) -> None:
        nonlocal ended
        if not ended:
            ended = True
            raise NoiseInterrupted(number)

    wanted = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]  # nohup ignores SIGHUP
    before = {number: signal.signal(number, end) for number in wanted}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if ended else handler)  # also while the process exits
