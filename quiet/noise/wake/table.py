"""Format the report of wake-ups as lines of text, with `**bold**` as in cli/text.py."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from quiet.noise.budgets import show
from quiet.noise.command_report import plural
from quiet.noise.table import histogram, machine, throttling
from quiet.noise.wake.events_around import TimelineEvent
from quiet.noise.wake.report import CpuWakes, StoppedAt, WakeReport, WakeUpReport

FEW = 5  # maximum number of parts of a wake-up, and of causes; --json has all
_WORDS = {
    "timer": "timer interrupt {} late",
    "wake": "{} until the wake-up",
    "switch": "{} until the thread had the CPU",
    "return": "{} until it ran in user space",
}


def lines(report: WakeReport) -> Iterator[str]:
    """Yield the lines of the whole report."""
    how = f"SCHED_FIFO {report.fifo}" if report.fifo else "an ordinary task"
    yield f"slept for {report.duration_s:.4g} s, a wake-up every {show(report.period_ns)}, as {how}"
    yield from machine(report.virtual)
    yield f"source of causes: {report.source}"
    for text in report.all_limits:
        yield f"  {text}"
    for number, cpu in report.cpus.items():
        yield ""
        yield from _cpu(number, cpu)
    if report.stopped:
        yield ""
        yield from _stopped(report.stopped)
    yield ""
    if report.exceeded:
        yield "**not quiet**: " + "; ".join(each.text for each in report.exceeded)
    elif any(limit is not None for limit in report.budgets):
        yield "**quiet**: within the limits"
    else:
        yield "no limit was given (--max-latency, --stop-above), so there is no verdict"
    yield from throttling(report.throttled)


def _cpu(number: int, cpu: CpuWakes) -> Iterator[str]:
    yield f"**CPU {number}**: {plural(cpu.wakes, 'wake-up')}, {plural(cpu.missed, 'period')} missed"
    if not cpu.wakes:
        return
    values = {"min": cpu.min_ns, **cpu.percentiles_ns, "max": cpu.max_ns}
    yield "  latency: " + ", ".join(f"{name} {show(value)}" for name, value in values.items())
    if states := [each for each in cpu.idle if each.usage]:
        texts = (
            f"{each.name} {each.usage:,} times, {show(each.time_us * 1e3)}"
            + (f" (wakes in {each.latency_us} us)" if each.latency_us else "")
            for each in states
        )
        yield f"  idle states: {'; '.join(texts)}"
        if cpu.idle_remedy and not cpu.causes:
            yield f"    -> {cpu.idle_remedy}"
    elif cpu.idle:
        yield "  idle states: none used"
    if cpu.worst:
        yield from _wake_up(cpu.worst[0])
    if cpu.causes:
        yield f"  longest part of the worst {len(cpu.worst)} wake-ups"
    for cause in cpu.causes[:FEW]:
        yield f"    {cause.wake_ups:>2} x {cause.cause}, up to {show(cause.max_ns)}"
        yield f"      -> {cause.remedy}"
    yield ""
    yield from histogram(dict(cpu.histogram_us), "wake-ups by latency", 1000)
    if cpu.beyond:
        yield f"  {plural(cpu.beyond, 'wake-up')} beyond this range"


def _wake_up(worst: WakeUpReport) -> Iterator[str]:
    yield f"  worst: {show(worst.latency_ns)}, {worst.at_s:.6f} s after the start"
    if worst.phases_ns is None:
        return
    phases = (_WORDS[name].format(show(took)) for name, took in worst.phases_ns.items())
    yield f"    {', '.join(phases)}"
    causes: dict[str, float] = {}
    for part in worst.parts:  # the parts of all phases together
        causes[part.cause] = causes.get(part.cause, 0.0) + part.ns
    for cause, took in sorted(causes.items(), key=lambda item: -item[1])[:FEW]:
        yield f"    {show(took):>8}  {cause}"


def _stopped(at: StoppedAt) -> Iterator[str]:
    yield f"**stopped** by a wake-up on CPU {at.cpu} that was {show(at.latency_ns)} late"
    if at.timeline:
        yield "  times relative to when the wake-up was due"
    yield from timeline(at.timeline)


def timeline(events: Sequence[TimelineEvent]) -> Iterator[str]:
    """Yield a line for each event, with its time in microseconds."""
    for each in events:
        yield f"  {each.ns / 1e3:>+12.1f} us  {each.event}"
