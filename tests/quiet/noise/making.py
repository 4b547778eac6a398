"""Synthetic measurements for the tests: a tick is a nanosecond."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from quiet.cli import json_output
from quiet.noise import attribute, call_nesting, report
from quiet.noise._noise import lib
from quiet.noise.attribute import UNKNOWN, Account, Cause, Explained, Gap, Total
from quiet.noise.budgets import NONE, Budgets
from quiet.noise.clock import Clock, Moment
from quiet.noise.counters import Count
from quiet.noise.detector import Watched
from quiet.noise.measure import NoiseMeasurement, OnCpu

SECOND = 1_000_000_000
CLOCK = Clock(Moment(0, 1, 0, 5000 * SECOND), Moment(SECOND, 1, SECOND, 5001 * SECOND))

# Every kind that a cause can have.
KINDS = (
    *(
        call_nesting.HRTIMER,
        call_nesting.TIMER,
        call_nesting.PULLED,
        call_nesting.WORK,
        call_nesting.CALL,
        call_nesting.THREAD,
        call_nesting.FAULT,
        call_nesting.COUNTED,
    ),
    *(
        call_nesting.VECTOR,
        call_nesting.IRQ,
        call_nesting.SOFTIRQ,
        call_nesting.NMI,
        attribute.HOST,
        attribute.STALL,
        attribute.UNKNOWN,
    ),
)
# What only a part of a wake-up can be.
WAKE_KINDS = (attribute.IDLE, attribute.IRQS_OFF, attribute.OTHER_CPU, attribute.SCHEDULER, attribute.USER_RETURN)


def watched(gaps: Sequence[Gap], cpu: int = 1, more: int = 0) -> Watched:
    """A second on a CPU with these gaps kept, and `more` of the first one's length that were not."""
    lengths = [gap.length for gap in gaps] + [gaps[0].length] * more if gaps else []
    histogram: dict[int, int] = {}
    for length in lengths:
        low = lib.qn_bucket_floor(lib.qn_bucket(length))
        histogram[low] = histogram.get(low, 0) + 1
    return Watched(
        cpu=cpu,
        period=10.0,
        step=1,
        threshold=31,
        begin=0,
        end=SECOND,
        readings=100,
        count=len(lengths),
        lost=sum(lengths),
        longest=max(lengths, default=0),
        shortest=min(lengths, default=0),
        looking=0,
        switches=0,
        faults=0,
        histogram=histogram,
        gaps=list(gaps),
        limits=(),
        pid=1234,
    )


def on_cpu(causes: Sequence[tuple[Cause, int]], cpu: int = 1, more: int = 0) -> OnCpu:
    """A CPU with a gap for each cause, of this length."""
    gaps = [Gap(1000 + number * 10_000_000, length) for number, (_, length) in enumerate(causes)]
    done = Account()
    for gap, (cause, length) in zip(gaps, causes, strict=True):
        total = done.totals.setdefault(cause, Total())
        total.count += 1
        total.gaps += 1
        total.total += length
        total.longest = max(total.longest, length)
        done.explained.append(Explained(gap, [(cause, length)]))
    interrupts = {"LOC": Count("Local timer interrupts", 250, 250, True), "TLB": Count("TLB shootdowns", 7, None, None)}
    return OnCpu(watched(gaps, cpu, more), done, interrupts, {}, None)


def measured(
    cpus: Mapping[int, OnCpu] | None = None, virtual: str = "", in_place: Collection[str] = ()
) -> NoiseMeasurement:
    """A measurement of a second; `in_place`: the remedies that each CPU has already."""
    found = cpus or {1: on_cpu([(Cause(UNKNOWN, "short"), 1500)])}
    return NoiseMeasurement(
        CLOCK,
        1.0,
        virtual,
        "a synthetic source",
        ["a synthetic limit"],
        dict.fromkeys(found, frozenset(in_place)),
        dict(found),
    )


def shape(made: NoiseMeasurement, budgets: Budgets = NONE) -> dict[str, Any]:
    """The JSON of a measurement's report, as it is read again."""
    return dict(json.loads(json.dumps(json_output.to_object(report.make(made, budgets, {})))))


def cpu_shape(made: NoiseMeasurement, cpu: int) -> dict[str, Any]:
    """The JSON of one CPU."""
    return dict(shape(made)["cpus"][str(cpu)])
