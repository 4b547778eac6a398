"""Build the report of wake-ups: latency statistics, the worst wake-ups with causes and remedies, and the verdict.

The fields have the names of the keys of `quiet noise --wake --json`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from quiet.noise.attribute import IDLE, Cause
from quiet.noise.budgets import Nanoseconds
from quiet.noise.names import label
from quiet.noise.remedies.remedy import BOOT, KNOB
from quiet.noise.remedies.table import remedy
from quiet.noise.report import MAX_LATENCY, STOP_ABOVE, Exceeded
from quiet.noise.wake.anatomy import PHASES
from quiet.noise.wake.events_around import TimelineEvent
from quiet.noise.wake.idle_states import IdleState
from quiet.noise.wake.measure import ExplainedWakeUp, WakeMeasurement
from quiet.noise.wake.sleeper import BIN_NS, Slept

PERCENTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
_US = 1_000


class WakeBudgets(NamedTuple):
    """The limits for the latency of a wake-up, in ns; None: no limit. `stop_above` also ends the measurement."""

    max_latency_ns: float | None = None
    stop_above_ns: float | None = None


@dataclass(frozen=True, slots=True)
class PartReport:
    """The work that had the CPU in one phase of a wake-up (anatomy.PHASES), and its remedy.

    `knob`, `boot`: the knob or kernel parameter that is the remedy, else None.
    """

    phase: str
    cause: str
    kind: str
    ns: Nanoseconds
    remedy: str
    knob: str | None
    boot: str | None


@dataclass(frozen=True, slots=True)
class WakeUpReport:
    """One of the worst wake-ups. `phases_ns` adds up to the latency; None without a trace of the thread."""

    number: int
    at_s: float
    latency_ns: int
    phases_ns: Mapping[str, Nanoseconds] | None
    parts: tuple[PartReport, ...]


@dataclass(frozen=True, slots=True)
class WorstCause:
    """A cause of the worst wake-ups: in how many it was the longest part, and its longest time in one of them.

    `knob`, `boot`: the knob or kernel parameter that is the remedy, else None.
    """

    cause: str
    kind: str
    wake_ups: int
    max_ns: Nanoseconds
    remedy: str
    knob: str | None
    boot: str | None


@dataclass(frozen=True, slots=True)
class CpuWakes:
    """The wake-ups of one CPU.

    `histogram_us`: the bins of 1 us that are not empty; `beyond`: the number of wake-ups later than the last bin's end;
    `idle_remedy`: how to keep the CPU out of idle states, if it was in a state that takes time to leave.
    """

    wakes: int
    missed: int
    min_ns: int
    mean_ns: Nanoseconds
    percentiles_ns: Mapping[str, int]
    max_ns: int
    histogram_us: tuple[tuple[int, int], ...]
    beyond: int
    idle: tuple[IdleState, ...]
    idle_remedy: str | None
    worst: tuple[WakeUpReport, ...]
    causes: tuple[WorstCause, ...]
    timer_slack_ns: int
    faults: int
    limits: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StoppedAt:
    """The wake-up that ended the measurement, and the events around it; times are relative to its requested time."""

    cpu: int
    latency_ns: int
    timeline: tuple[TimelineEvent, ...]


@dataclass(frozen=True, slots=True)
class WakeReport:
    """The whole report. `fifo`: the requested priority; 0: an ordinary task."""

    duration_s: float
    period_ns: int
    fifo: int
    source: str
    limits: tuple[str, ...]
    virtual: str | None
    cpus: Mapping[int, CpuWakes]
    budgets: WakeBudgets
    stopped: StoppedAt | None
    exceeded: tuple[Exceeded, ...]
    throttled: Mapping[int, int]

    @property
    def all_limits(self) -> list[str]:
        """The limitations of the measurement on any CPU, without duplicates."""
        own = (text for cpu in self.cpus.values() for text in cpu.limits)
        return list(dict.fromkeys([*self.limits, *own]))


def percentile(slept: Slept, q: float) -> int:
    """The quantile `q` of the latency in ns: the beginning of its bin (BIN_NS), limited to the range of latencies."""
    rank, seen = q * slept.wakes, 0
    for number, count in sorted(slept.bins.items()):
        seen += count
        if seen >= rank:
            return min(max(number * BIN_NS, slept.least), slept.most)
    return slept.most


def histogram_us(slept: Slept) -> tuple[tuple[int, int], ...]:
    """The bins of 1 us: (start in us, number of wake-ups)."""
    bins: dict[int, int] = {}
    for number, count in slept.bins.items():
        bins[number * BIN_NS // _US] = bins.get(number * BIN_NS // _US, 0) + count
    return tuple(sorted(bins.items()))


def judge(measured: WakeMeasurement, budgets: WakeBudgets) -> list[Exceeded]:
    """The limits that CPUs exceeded."""
    limits = ((MAX_LATENCY, budgets.max_latency_ns), (STOP_ABOVE, budgets.stop_above_ns))
    return [
        Exceeded(cpu, name, limit, on.slept.most)
        for cpu, on in sorted(measured.cpus.items())
        for name, limit in limits
        if limit is not None and on.slept.most > limit
    ]


def _part(measured: WakeMeasurement, cpu: int, phase: str, cause: Cause, ticks: int) -> PartReport:
    item = remedy(cause, cpu, measured.cpus[cpu].in_place, measured.together, measured.absent)
    return PartReport(
        phase,
        label(cause),
        cause.kind,
        Nanoseconds(measured.clock.ns(ticks)),
        item.sentence,
        item.what if item.how == KNOB else None,
        item.what if item.how == BOOT else None,
    )


def _wake_up(measured: WakeMeasurement, cpu: int, each: ExplainedWakeUp) -> WakeUpReport:
    ns, anatomy = measured.clock.ns, each.anatomy
    return WakeUpReport(
        number=each.wake_up.number,
        at_s=round(ns(each.wake_up.ticks - measured.cpus[cpu].slept.begin) / 1e9, 6),
        latency_ns=each.wake_up.latency,
        phases_ns=(
            {phase: Nanoseconds(ns(took)) for phase, took in zip(PHASES, anatomy.phases, strict=True)}
            if anatomy
            else None
        ),
        parts=tuple(_part(measured, cpu, *part) for part in anatomy.parts) if anatomy else (),
    )


def _causes(worst: tuple[WakeUpReport, ...]) -> tuple[WorstCause, ...]:
    """The causes that were the longest part of a worst wake-up, by name, most frequent first."""
    found: dict[str, WorstCause] = {}
    for each in worst:
        for part in each.parts[:1]:
            known = found.get(part.cause)
            count, most = (known.wake_ups, known.max_ns) if known else (0, part.ns)
            found[part.cause] = WorstCause(
                part.cause, part.kind, count + 1, max(most, part.ns), part.remedy, part.knob, part.boot
            )
    return tuple(sorted(found.values(), key=lambda cause: (-cause.wake_ups, -cause.max_ns)))


def of_cpu(measured: WakeMeasurement, cpu: int) -> CpuWakes:
    """The report of one CPU."""
    on, slept = measured.cpus[cpu], measured.cpus[cpu].slept
    worst = tuple(_wake_up(measured, cpu, each) for each in on.worst)
    slept_in = [state for state in on.idle if state.usage and state.latency_us]
    return CpuWakes(
        wakes=slept.wakes,
        missed=slept.missed,
        min_ns=slept.least,
        mean_ns=Nanoseconds(slept.total / slept.wakes if slept.wakes else 0),
        percentiles_ns={name: percentile(slept, q) for name, q in PERCENTILES.items()},
        max_ns=slept.most,
        histogram_us=histogram_us(slept),
        beyond=slept.beyond,
        idle=on.idle,
        idle_remedy=remedy(Cause(IDLE, slept_in[-1].name), cpu, on.in_place).sentence if slept_in else None,
        worst=worst,
        causes=_causes(worst),
        timer_slack_ns=slept.slack,
        faults=slept.faults,
        limits=slept.limits,
    )


def make(measured: WakeMeasurement, budgets: WakeBudgets, throttled: Mapping[int, int]) -> WakeReport:
    """The report of a measurement, judged by budgets. `throttled`: how often each CPU was throttled."""
    ns = measured.clock.ns
    stopped = None
    if measured.stopped is not None:
        latency = measured.cpus[measured.stopped].slept.most
        stopped = StoppedAt(measured.stopped, latency, measured.timeline)
    seconds = max((ns(on.slept.end - on.slept.begin) for on in measured.cpus.values()), default=0.0) / 1e9
    return WakeReport(
        duration_s=round(seconds, 6),
        period_ns=measured.request.sleep.period,
        fifo=measured.request.sleep.fifo,
        source=measured.source,
        limits=tuple(measured.limits),
        virtual=measured.virtual or None,
        cpus={cpu: of_cpu(measured, cpu) for cpu in sorted(measured.cpus)},
        budgets=budgets,
        stopped=stopped,
        exceeded=tuple(judge(measured, budgets)),
        throttled=throttled,
    )
