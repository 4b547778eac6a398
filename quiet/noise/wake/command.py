"""Run `quiet noise --wake`: parse the options, measure, and make the report."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from quiet import console
from quiet.cpulist import CpuSet
from quiet.errors import UsageError
from quiet.host.host import Host
from quiet.machine import virtualization
from quiet.noise import budgets
from quiet.noise.measure_and_judge import ENDING, NoiseInterrupted, NoiseTexts, duration, priority, slowed
from quiet.noise.wake import measure, report, table
from quiet.noise.wake.measure import WakeRequest
from quiet.noise.wake.report import WakeBudgets, WakeReport
from quiet.noise.wake.sleeper import SleepRequest

SECONDS = 10.0
PERIOD_NS, LEAST_NS, MOST_NS = 1_000_000, 50_000, 1_000_000_000
GAPS_ONLY = {"threshold": "", "max_lost": "", "max_gap": "; --max-latency limits wake-ups", "max_interrupts": ""}
GAPS_ONLY |= {"timeline": "; --save-trace writes the events of --stop-above", "prove": ""}


@dataclass(frozen=True, slots=True)
class WakeOptions:
    """The checked options of `quiet noise --wake`."""

    sleep: SleepRequest
    trace: bool
    limits: WakeBudgets
    save_trace: str | None


def options(texts: NoiseTexts) -> WakeOptions:
    """Check the options and return their values. Raises UsageError, which names the wrong option."""
    for name, instead in GAPS_ONLY.items():
        if getattr(texts, name) is not None:
            raise UsageError(f"--{name.replace('_', '-')} applies to gaps; omit --wake or this option{instead}")
    seconds = duration(texts.duration, SECONDS)
    if not seconds:
        raise UsageError("--duration 0: must be above 0 to measure; write seconds, such as 10")
    period = PERIOD_NS if texts.period is None else round(budgets.parse_ns(texts.period, "--period"))
    if not LEAST_NS <= period <= MOST_NS:
        raise UsageError(f"--period {texts.period}: must be from {budgets.show(LEAST_NS)} to {budgets.show(MOST_NS)}")
    if period > seconds * 1e9:
        raise UsageError(
            f"--period {texts.period}: longer than the whole --duration of {seconds:g} s; shorten it, or measure longer"
        )
    given = {"--max-latency": texts.max_latency, "--stop-above": texts.stop_above}
    limits = WakeBudgets(*(None if text is None else budgets.parse_ns(text, name) for name, text in given.items()))
    if texts.save_trace is not None:
        if texts.stop_above is None:
            raise UsageError("--save-trace needs --stop-above; add, for example, --stop-above 50us")
        if texts.no_trace is not None:
            raise UsageError("--save-trace: writes events of the trace; omit --no-trace")
        console.check_savable(texts.save_trace, "--save-trace")
    sleep = SleepRequest(period, round(seconds * 1e9), round(limits.stop_above_ns or 0), priority(texts.fifo))
    return WakeOptions(sleep, texts.no_trace is None, limits, texts.save_trace)


@contextmanager
def _noting_signals() -> Iterator[list[int]]:
    """Yield the received signals; the first signal ends the measurement, and the results so far are reported."""
    noted: list[int] = []
    wanted = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]  # nohup ignores SIGHUP
    before = {number: signal.signal(number, lambda came, _frame: noted.append(came)) for number in wanted}
    try:
        yield noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run(cpus: CpuSet, wanted: WakeOptions, progress: Callable[[float, float], None]) -> WakeReport:
    """Measure CPUs of this host. `progress` is called with the elapsed and the requested seconds.

    Raises the errors of measure.measure(), and NoiseInterrupted if a signal arrives before the first wake-up.
    """
    seconds = wanted.sleep.duration / 1e9
    with _noting_signals() as signals:

        def tick(passed: float) -> bool:
            progress(passed, seconds)
            return bool(signals)

        host = Host()
        before = virtualization.throttled(host, cpus)
        measured = measure.measure(host, WakeRequest(cpus, wanted.sleep, wanted.trace), tick)
        throttled = slowed(before, virtualization.throttled(host, cpus))
        progress(seconds, seconds)  # show 100 % even if the measurement ended early
        if signals:
            if not any(on.slept.wakes for on in measured.cpus.values()):
                raise NoiseInterrupted(signals[0])
            name = signal.Signals(signals[0]).name
            measured.limits.append(f"ended early by {name}: the report covers the time until then")
        return report.make(measured, wanted.limits, throttled)


def saved_trace(result: WakeReport) -> str:
    """The text for --save-trace: the timeline of the wake-up that ended the measurement; one line if there was none."""
    if result.stopped is None:
        return "no wake-up exceeded the limit\n"
    head = (
        f"CPU {result.stopped.cpu}: a wake-up {budgets.show(result.stopped.latency_ns)} late; times are relative "
        "to when it was due"
    )
    return "\n".join([head, *table.timeline(result.stopped.timeline)]) + "\n"
