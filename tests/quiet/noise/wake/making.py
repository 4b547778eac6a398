"""Synthetic wake-ups for the tests: a tick is a nanosecond."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from quiet.noise.wake.anatomy import Anatomy
from quiet.noise.wake.events_around import TimelineEvent
from quiet.noise.wake.idle_states import IdleState
from quiet.noise.wake.measure import ExplainedWakeUp, WakeMeasurement, WakeRequest, WakesOnCpu
from quiet.noise.wake.sleeper import BIN_NS, SleepRequest, Slept, WakeUp
from tests.quiet.noise.making import CLOCK

BINS = 100_000
C1 = IdleState(1, "C1", 2, False, 90, 900)


def slept(latencies: Sequence[int], cpu: int = 1, missed: int = 0) -> Slept:
    """A thread with these latencies in ns, 1 ms apart."""
    wakes = [WakeUp(latency, 1_000_000 * (number + 1) + latency, number) for number, latency in enumerate(latencies)]
    return Slept(
        cpu=cpu,
        pid=77,
        begin=0,
        end=1_000_000 * len(latencies),
        wakes=len(latencies),
        missed=missed,
        total=sum(latencies),
        least=min(latencies, default=0),
        most=max(latencies, default=0),
        beyond=sum(latency // BIN_NS >= BINS for latency in latencies),
        bins=dict(Counter(latency // BIN_NS for latency in latencies if latency // BIN_NS < BINS)),
        worst=tuple(sorted(wakes, reverse=True)[:16]),
        slack=1,
        faults=0,
        limits=(),
    )


def measured(
    one: Slept,
    anatomies: Sequence[Anatomy] = (),
    in_place: frozenset[str] = frozenset(),
    stop_above: int = 0,
    timeline: Sequence[TimelineEvent] = (),
) -> WakeMeasurement:
    """A measurement of one CPU; the worst wake-ups have these anatomies, the highest latency first, the others none."""
    request = WakeRequest(frozenset({one.cpu}), SleepRequest(1_000_000, 1_000_000_000, stop_above))
    explained = [*anatomies, *([None] * len(one.worst))]
    worst = tuple(ExplainedWakeUp(each, how) for each, how in zip(one.worst, explained, strict=False))
    made = WakeMeasurement(CLOCK, request, "", "a synthetic source", ["a synthetic limit"], str(one.cpu), {})
    made.cpus[one.cpu] = WakesOnCpu(one, worst, (C1,), in_place)
    if stop_above and one.most > stop_above:
        made.stopped, made.timeline = one.cpu, tuple(timeline)
    return made
