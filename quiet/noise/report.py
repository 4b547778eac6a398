"""Build the report of a measurement: times in nanoseconds, the remedy of each cause, and the verdict by budgets.

The fields have the names of the keys of `quiet noise --json`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quiet.noise import clock
from quiet.noise.attribute import HOST, STALL, UNKNOWN, Cause, Total
from quiet.noise.budgets import Budgets, Nanoseconds, show
from quiet.noise.core_frequency import CoreFrequency
from quiet.noise.counters import NOT_INTERRUPTS, Count
from quiet.noise.measure import NoiseMeasurement, OnCpu
from quiet.noise.names import inside, label
from quiet.noise.prove import Proof
from quiet.noise.remedies.remedy import BOOT, KNOB
from quiet.noise.remedies.table import remedy

FREQUENCY = "frequency"  # Exceeded.budget for a frequency other than the only one that cpufreq allows
MAX_LATENCY, STOP_ABOVE = "max-latency", "stop-above"  # budgets for wake-ups (wake/report.py)
FIXED_WITHIN = 0.01
_TIMES = ("max-gap", MAX_LATENCY, STOP_ABOVE)
LONG_NS = 1_000  # unattributed gaps of at least this length are counted
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A budget that a CPU has exceeded, or a frequency other than the only one allowed (FREQUENCY)."""

    cpu: int
    budget: str
    limit: float
    found: float

    @property
    def text(self) -> str:
        """The exceeded budget as a line of text."""
        word = "fixed at" if self.budget == FREQUENCY else "allowed"
        return f"CPU {self.cpu}: {self.budget} {self._show(self.found)}, {word} {self._show(self.limit)}"

    def _show(self, value: float) -> str:
        if self.budget in _TIMES:
            return show(value)
        if self.budget == FREQUENCY:
            return f"{value / 1e9:.3f} GHz"
        return f"{value:.3g} " + ("%" if self.budget == "max-lost" else "a second")


@dataclass(frozen=True, slots=True)
class CauseReport:
    """A cause, its total time, and its remedy.

    `inside`: the code that ran while the host took the CPU, else None; `knob`, `boot`: the knob or kernel parameter
    that is the remedy, else None.
    """

    cause: str
    kind: str
    inside: str | None
    count: int
    total_ns: Nanoseconds
    max_ns: Nanoseconds
    gaps: int
    remedy: str
    knob: str | None
    boot: str | None


@dataclass(frozen=True, slots=True)
class TaskReport:
    """A task that ran and used this CPU last: how often it got a CPU, and its run time, both on all CPUs.

    Source: the scheduler's statistics.
    """

    task: str
    count: int
    total_ns: Nanoseconds


@dataclass(frozen=True, slots=True)
class TracingCost:
    """The cost of the tracing itself; None if unknown."""

    events: int
    event_ns: Nanoseconds | None
    cost_pct: float | None


@dataclass(frozen=True, slots=True)
class RanAt:
    """The frequency while the CPU was measured.

    `hz`: None if unknown, with the reason in `source`. `asked_hz`: the only frequency that the limits of cpufreq allow;
    None if they allow several, or if there are no limits.
    """

    hz: float | None
    asked_hz: float | None
    source: str


@dataclass(frozen=True, slots=True)
class CpuReport:
    """The report of one CPU; None: unknown.

    The shares are percentages of the measured time. `kept`: the number of gaps that were recorded and attributed; the
    rest of the `gaps` were only counted.
    """

    gaps: int
    kept: int
    lost_pct: float
    host_pct: float
    stall_pct: float
    unattributed_pct: float
    max_ns: Nanoseconds
    min_ns: Nanoseconds
    percentiles_ns: Mapping[str, Nanoseconds]
    causes: tuple[CauseReport, ...]
    unattributed: int
    interrupts: Mapping[str, Count]
    softirqs: Mapping[str, int]
    steal_ms: float | None
    smi: int | None
    lost_events: int
    tick_kept: Mapping[str, int]
    tracing: TracingCost
    histogram_ns: tuple[tuple[Nanoseconds, int], ...]
    looking_pct: float
    limits: tuple[str, ...]
    tasks: tuple[TaskReport, ...] = ()  # only without tracing; with tracing, they are among the causes
    frequency: CoreFrequency | None = None  # measured by chains of additions right before and right after
    ran: RanAt | None = None

    @property
    def own_pct(self) -> float:
        """The percentage of the measured time that was lost to causes within this system."""
        return self.lost_pct - self.host_pct - self.stall_pct - self.unattributed_pct


@dataclass(frozen=True, slots=True)
class DetectorReport:
    """The detector on the first CPU, and its clock."""

    clock: str
    ticks_per_second: int
    loop_ns: float
    step_ns: float
    threshold_ns: float


@dataclass(frozen=True, slots=True)
class NoiseReport:
    """The whole report.

    `limits`: the limitations of the measurement. `smi_source`: the source of the SMI counts, or the reason why
    there are none. `throttled`: how often each CPU was throttled because of heat or a power limit; CPUs without such a
    count are absent.
    """

    duration_s: float
    source: str
    limits: tuple[str, ...]
    virtual: str | None
    detector: DetectorReport
    cpus: Mapping[int, CpuReport]
    budgets: Budgets
    exceeded: tuple[Exceeded, ...]
    throttled: Mapping[int, int]
    smi_source: str = ""
    proof: Proof | None = None  # the result of --prove

    @property
    def all_limits(self) -> list[str]:
        """The limitations of the measurement on any CPU, without duplicates."""
        own = (text for cpu in self.cpus.values() for text in cpu.limits)
        return list(dict.fromkeys([*self.limits, *own]))


def lost_pct(on: OnCpu, ticks: float | None = None) -> float:
    """Convert `ticks`, by default the time that the CPU lost to interruptions, to a percentage of the measured time."""
    watched = on.watched
    return 100 * (watched.lost if ticks is None else ticks) / max(watched.end - watched.begin, 1)


def interrupts(lines: Mapping[str, Count]) -> int:
    """The number of interrupts that the kernel counted on a CPU."""
    return sum(line.counted for name, line in lines.items() if name not in NOT_INTERRUPTS)


def judge(measured: NoiseMeasurement, budgets: Budgets) -> list[Exceeded]:
    """The exceeded budgets, and frequencies that differ from a fixed one; empty if all CPUs are quiet."""
    exceeded = []
    for cpu, on in sorted(measured.cpus.items()):
        seconds = measured.clock.ns(on.watched.end - on.watched.begin) / 1e9
        values = (
            ("max-lost", budgets.max_lost_pct, lost_pct(on)),
            ("max-gap", budgets.max_gap_ns, measured.clock.ns(on.watched.longest)),
            ("max-interrupts", budgets.max_interrupts_per_s, interrupts(on.interrupts) / seconds if seconds else 0.0),
        )
        exceeded += [
            Exceeded(cpu, name, limit, value) for name, limit, value in values if limit is not None and value > limit
        ]
        actual = on.frequency.hz if on.frequency else None
        actual = (on.ran.mean_hz if on.ran else None) or actual
        if actual and on.fixed_hz and abs(actual / on.fixed_hz - 1) > FIXED_WITHIN:
            exceeded.append(Exceeded(cpu, FREQUENCY, on.fixed_hz, actual))
    return exceeded


def by_cost(totals: Mapping[Cause, Total]) -> list[tuple[Cause, Total]]:
    """The causes with their totals, costliest first."""
    return sorted(totals.items(), key=lambda item: (-item[1].total, -item[1].count, item[0]))


def share(on: OnCpu, kinds: Sequence[str] | None) -> float:
    """The percentage of the time that causes of these kinds took; None: of all kinds."""
    totals = on.account.totals.items()
    return lost_pct(on, sum(total.total for cause, total in totals if kinds is None or cause.kind in kinds))


def percentile(histogram: Mapping[int, int], q: float) -> int:
    """The lowest value of the bucket that contains the quantile `q` of the gaps; 0 if there are no gaps."""
    rank, seen = q * sum(histogram.values()), 0
    for low, count in sorted(histogram.items()):
        seen += count
        if seen >= rank:
            return low
    return 0


def unattributed(on: OnCpu, long: int) -> int:
    """The number of gaps of at least `long` ticks whose largest part is unattributed."""
    return sum(each.gap.length >= long and each.parts[0][0].kind == UNKNOWN for each in on.account.explained)


def _cause(measured: NoiseMeasurement, cpu: int, cause: Cause, total: Total) -> CauseReport:
    item = remedy(cause, cpu, measured.in_place[cpu], measured.together, measured.absent, measured.naming)
    return CauseReport(
        cause=label(cause),
        kind=cause.kind,
        inside=inside(cause) or None,
        count=total.count,
        total_ns=Nanoseconds(measured.clock.ns(total.total)),
        max_ns=Nanoseconds(measured.clock.ns(total.longest)),
        gaps=total.gaps,
        remedy=item.sentence,
        knob=item.what if item.how == KNOB else None,
        boot=item.what if item.how == BOOT else None,
    )


def of_cpu(measured: NoiseMeasurement, cpu: int) -> CpuReport:
    """The report of one CPU."""
    on, watched = measured.cpus[cpu], measured.cpus[cpu].watched

    def ns(ticks: float) -> Nanoseconds:
        return Nanoseconds(measured.clock.ns(ticks))

    cost = on.event_cost
    return CpuReport(
        gaps=watched.count,
        kept=len(watched.gaps),
        lost_pct=lost_pct(on),
        host_pct=share(on, (HOST,)),
        stall_pct=share(on, (STALL,)),
        unattributed_pct=share(on, (UNKNOWN,)) + max(lost_pct(on) - share(on, None), 0.0),
        max_ns=ns(watched.longest),
        min_ns=ns(watched.shortest),
        percentiles_ns={f"p{q}": ns(percentile(watched.histogram, q / 100)) for q in PERCENTILES},
        causes=tuple(_cause(measured, cpu, cause, total) for cause, total in by_cost(on.account.totals)),
        unattributed=unattributed(on, measured.clock.ticks(LONG_NS)),
        interrupts=on.interrupts,
        softirqs=on.softirqs,
        steal_ms=on.stolen_ms,
        smi=on.firmware,
        lost_events=on.lost_events,
        tick_kept=on.tick_kept,
        tracing=TracingCost(
            on.events, None if cost is None else ns(cost), None if cost is None else lost_pct(on, on.events * cost)
        ),
        histogram_ns=tuple((ns(low), count) for low, count in sorted(watched.histogram.items())),
        looking_pct=lost_pct(on, watched.looking),
        limits=watched.limits,
        frequency=on.frequency,
        ran=RanAt(on.ran.mean_hz, on.fixed_hz, on.ran.source) if on.ran else None,
        tasks=tuple(TaskReport(f"{t.comm} ({t.tid})", t.slices, Nanoseconds(t.run_ns)) for t in on.tasks),
    )


def make(
    measured: NoiseMeasurement, budgets: Budgets, throttled: Mapping[int, int], proof: Proof | None = None
) -> NoiseReport:
    """The report of a measurement, judged by budgets. `throttled`: see NoiseReport."""
    first = next(iter(measured.cpus.values())).watched
    ns = measured.clock.ns
    detector = DetectorReport(
        clock=clock.name(),
        ticks_per_second=round(measured.clock.per_second),
        loop_ns=round(ns(first.period), 2),
        step_ns=round(ns(first.step), 2),
        threshold_ns=round(ns(first.threshold), 1),
    )
    return NoiseReport(
        duration_s=round(measured.seconds, 6),
        source=measured.source,
        limits=tuple(measured.limits),
        virtual=measured.virtual or None,
        detector=detector,
        cpus={cpu: of_cpu(measured, cpu) for cpu in sorted(measured.cpus)},
        budgets=budgets,
        exceeded=tuple(judge(measured, budgets)),
        throttled=throttled,
        smi_source=measured.smi_source,
        proof=proof,
    )
