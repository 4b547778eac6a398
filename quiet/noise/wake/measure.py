"""Measure wake-ups: sleeping threads on their CPUs, tracing around the wake-ups, and idle states before and after."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.host.host import Host
from quiet.machine.facts import Facts
from quiet.machine.virtualization import hypervisor
from quiet.noise import clock, detector, tracefs
from quiet.noise.clock import Clock
from quiet.noise.kernel_parameters import absent_parameters, boot_parameters
from quiet.noise.own_cpus import elsewhere, self_inflicted
from quiet.noise.pinned import Tick, wait
from quiet.noise.wake import idle_states
from quiet.noise.wake.anatomy import Anatomy, Limits, Thread, dissect
from quiet.noise.wake.events_around import TimelineEvent, timeline
from quiet.noise.wake.idle_states import IdleState
from quiet.noise.wake.sleeper import Sleeper, SleepRequest, Slept, WakeUp, sleepers
from quiet.noise.wake.trace import DRAIN_S, WakeTrace, WakeTracer, window

SLOP_NS = 2_000  # the maximum difference between a thread's clock reading and the trace's time stamps
FAR_NS = 100_000  # the kernel's path from a wake-up to the thread is shorter, even in an emulator


@dataclass(frozen=True, slots=True)
class WakeRequest:
    """The options. `sleep`: those of each CPU's thread."""

    cpus: CpuSet
    sleep: SleepRequest
    trace: bool = True


@dataclass(frozen=True, slots=True)
class ExplainedWakeUp:
    """One of the worst wake-ups; `anatomy`: None without tracing, or if the trace does not contain the thread."""

    wake_up: WakeUp
    anatomy: Anatomy | None


@dataclass(frozen=True, slots=True)
class WakesOnCpu:
    """The measurements of one CPU. `worst`: the worst wake-ups, the highest latency first; `in_place`: kernel
    parameters in effect for the CPU.
    """

    slept: Slept
    worst: tuple[ExplainedWakeUp, ...]
    idle: tuple[IdleState, ...]
    in_place: frozenset[str]


@dataclass(slots=True)
class WakeMeasurement:
    """The measurements of all CPUs. `source`: the evidence for causes; `timeline`: the events around the wake-up that
    ended the measurement.
    """

    clock: Clock
    request: WakeRequest
    virtual: str
    source: str
    limits: list[str]
    together: str
    absent: dict[str, str]
    cpus: dict[int, WakesOnCpu] = field(default_factory=dict)
    stopped: int | None = None  # the CPU whose wake-up was later than `stop_above`
    timeline: tuple[TimelineEvent, ...] = ()


def measure(host: Host, wanted: WakeRequest, tick: Tick = lambda _passed: False) -> WakeMeasurement:
    """Measure several CPUs at the same time, and leave nothing behind.

    `tick`: see pinned.wait(). Raises UsageError for absent or offline CPUs, and DetectorError if a thread fails.
    """
    facts = Facts(host)
    detector.check_cpus(wanted.cpus, facts.online, facts.present, "--cpus")
    seconds = wanted.sleep.duration / 1e9
    with elsewhere(wanted.cpus), contextlib.ExitStack() as stack:
        tracefs.remove_left_over(host)
        first = clock.moment()
        limits = self_inflicted(wanted.cpus, facts.online, "delay")
        started = stack.enter_context(sleepers(sorted(wanted.cpus), wanted.sleep))
        tracer = _tracer(host, wanted, started, facts.online, limits, stack)
        before = idle_states.read(host, wanted.cpus)
        if tracer:
            tracer.on()
        wait(started, seconds, _going_on(started, tracer, tick))
        if tracer:
            tracer.off()
        after = idle_states.read(host, wanted.cpus)
        slept = {each.cpu: each.result() for each in started}
        traced = tracer.finish([each for one in slept.values() for each in one.worst]) if tracer else None
    result = WakeMeasurement(
        Clock(first, clock.moment()),
        wanted,
        hypervisor(facts),
        f"kernel tracing, clock {tracer.clock}" if tracer else "no tracing: the distribution only",
        [*limits, *(traced.limits if traced else [])],
        cpulist.format(wanted.cpus | facts.nohz_full),
        absent_parameters(facts),
    )
    for cpu, one in slept.items():
        states = idle_states.used(before[cpu], after[cpu])
        worst = tuple(ExplainedWakeUp(each, _anatomy(each, one, states, traced, result)) for each in one.worst)
        result.cpus[cpu] = WakesOnCpu(one, worst, states, boot_parameters(facts, cpu))
    _stopped(result, traced)
    return result


def _tracer(
    host: Host,
    wanted: WakeRequest,
    started: Sequence[Sleeper],
    online: CpuSet,
    limits: list[str],
    stack: contextlib.ExitStack,
) -> WakeTracer | None:
    """Prepare tracing without starting it; if it is unavailable, add the reason to `limits` and return None."""
    if not wanted.trace:
        limits.append("kernel tracing was not requested, so no wake-up has a cause")
        return None
    try:
        tracefs.check(host)
        pids = {each.cpu: each.pid for each in started}
        return stack.enter_context(WakeTracer(host, pids, online, wanted.sleep.period))
    except tracefs.NoTraceError as error:
        limits.append(f"kernel tracing is unavailable ({error}), so only the distribution is reported")
        if error.remedy:
            limits.append(f"to see the causes of the worst wake-ups, {error.remedy}")
        return None


def _going_on(started: Sequence[Sleeper], tracer: WakeTracer | None, tick: Tick) -> Tick:
    """A `tick` that also empties the trace periodically, and ends all threads if one has ended."""
    last = 0.0

    def go_on(passed: float) -> bool:
        nonlocal last
        if tracer and passed - last >= DRAIN_S:
            last = passed
            tracer.drain([worst for each in started for worst in each.worst()])
        return tick(passed) or not all(each.running() for each in started)

    return go_on


def _thread(slept: Slept, states: Sequence[IdleState], traced: WakeTrace) -> Thread:
    names: Mapping[int, str] = {each.state: each.name for each in states}
    return Thread(slept.cpu, slept.pid, lambda number: names.get(number, f"{number}"), traced.comm)


def _anatomy(
    each: WakeUp,
    slept: Slept,
    states: Sequence[IdleState],
    traced: WakeTrace | None,
    result: WakeMeasurement,
) -> Anatomy | None:
    if traced is None:
        return None
    ticks = result.clock.ticks
    since, until = window(each, result.clock, result.request.sleep.period)
    around = [event for event in traced.events[slept.cpu] if since <= event.time <= until]
    due = each.ticks - ticks(each.latency)
    thread = _thread(slept, states, traced)
    limits = Limits(ticks(SLOP_NS), ticks(FAR_NS), bool(result.virtual))
    return dissect(around, traced.wakings, thread, due, each.ticks, traced.namers[slept.cpu], limits)


def _stopped(result: WakeMeasurement, traced: WakeTrace | None) -> None:
    """Add the CPU whose wake-up ended the measurement to the result, with the events around that wake-up."""
    limit = result.request.sleep.stop_above
    over = {cpu: on for cpu, on in result.cpus.items() if limit and on.slept.most > limit}
    if not over:
        return
    result.stopped = min(over, key=lambda cpu: over[cpu].worst[0].wake_up.ticks)
    on = over[result.stopped]
    each = on.worst[0].wake_up
    if traced:
        thread = _thread(on.slept, on.idle, traced)
        due = each.ticks - result.clock.ticks(each.latency)
        around = traced.events[result.stopped]
        result.timeline = tuple(timeline(around, thread, due, each.ticks, result.clock.ns))
