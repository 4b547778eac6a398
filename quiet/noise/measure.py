"""Run the whole measurement: detectors on their CPUs, tracing around them, and the kernel's counts before and after."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.host.host import Host
from quiet.machine.facts import Facts
from quiet.machine.virtualization import hypervisor
from quiet.noise import attribute_untraced, clock, core_frequency, counters, decode, detector, events, tracefs
from quiet.noise.attribute import Account, account, name_smis
from quiet.noise.call_nesting import build
from quiet.noise.clock import Clock
from quiet.noise.command_tasks import TaskTimes, ran, run_times
from quiet.noise.core_frequency import CoreFrequency
from quiet.noise.counters import NOT_INTERRUPTS, TIMERS, Count, Counters, compare
from quiet.noise.detector import Detector, DetectorRequest, Watched
from quiet.noise.frequency import Frequency, FrequencyCounter
from quiet.noise.kernel_parameters import absent_parameters, boot_parameters
from quiet.noise.names import SENT_BEFORE_NS, Senders, namer
from quiet.noise.own_cpus import elsewhere, self_inflicted
from quiet.noise.pinned import Tick, wait
from quiet.noise.smi import SmiCounter

LOOK_NS = 2_000  # without tracing, the detector reads its own counters after gaps of at least this length
BUFFER_KB = 8_192
SENDERS_KB = 8_192  # for all CPUs together
PAGE_FAULT = "page_fault_user"
TURNS = 5  # repetitions to measure the cost of tracing an event
DRAIN_S = 0.5  # interval for emptying the buffers, enough for 400,000 events per second and CPU
Detectors = Callable[[Sequence[int], DetectorRequest], contextlib.AbstractContextManager[list[Detector]]]


@dataclass(frozen=True, slots=True)
class NoiseRequest:
    """The options of a measurement.

    `threshold_ns` None: the detector's default; `fifo`: SCHED_FIFO priority, 0: an ordinary task.
    """

    cpus: CpuSet
    seconds: float
    threshold_ns: float | None = None
    trace: bool = True
    fifo: int = 0
    source: str = "--cpus"  # the option that named the CPUs, for errors
    applied: frozenset[str] = frozenset()  # knobs that are applied to these CPUs


@dataclass(slots=True)
class OnCpu:
    """The measurements on one CPU; None: unknown."""

    watched: Watched
    account: Account
    interrupts: dict[str, Count]
    softirqs: dict[str, int]
    stolen_ms: float | None
    firmware: int | None = None  # SMIs that the processor counted
    lost_events: int = 0
    tick_kept: dict[str, int] = field(default_factory=dict)  # number of failed tick stops, by reason
    events: int = 0  # number of traced events
    event_cost: float | None = None  # the tracing overhead per event, in ticks
    tasks: list[TaskTimes] = field(default_factory=list)  # tasks that ran and used this CPU last, if nothing was traced
    frequency: CoreFrequency | None = None  # measured right before and right after the watch
    fixed_hz: float | None = None  # the only frequency that the limits of cpufreq allow; None: several, or no limits
    ran: Frequency | None = None  # measured by the processor's counters while the CPU was watched


@dataclass(slots=True)
class NoiseMeasurement:
    """The measurements of all CPUs.

    `virtual`: the hypervisor, "" on bare metal; `source`: the evidence for attribution; `limits`: the limitations of
    the measurement.
    """

    clock: Clock
    seconds: float
    virtual: str
    source: str
    limits: list[str]
    in_place: dict[int, frozenset[str]]  # remedies already in place, by CPU
    cpus: dict[int, OnCpu] = field(default_factory=dict)
    together: str = ""  # the tested and the nohz_full CPUs, as a list for kernel parameters
    absent: dict[str, str] = field(default_factory=dict)  # kernel parameters that this kernel lacks, with the reasons
    naming: str = ""  # a clause that explains how to make the kernel name more causes
    smi_source: str = ""  # source of the SMI counts, or the reason why there are none


def measure(
    host: Host,
    wanted: NoiseRequest,
    tick: Tick = lambda _passed: False,
    detectors: Detectors = detector.detectors,
) -> NoiseMeasurement:
    """Measure several CPUs at the same time, and leave nothing behind.

    `tick` is called periodically with the elapsed seconds; if it returns True, the measurement ends. Raises UsageError
    for CPUs or a threshold that cannot be measured, Refused if real-time detectors would occupy all CPUs, and
    DetectorError if a detector fails.
    """
    facts = Facts(host)
    detector.check_cpus(wanted.cpus, facts.online, facts.present, wanted.source, wanted.fifo)
    with elsewhere(wanted.cpus), contextlib.ExitStack() as stack:
        tracefs.remove_left_over(host)
        first = clock.moment()
        limits = self_inflicted(wanted.cpus, facts.online, "interrupt")
        naming: list[str] = []
        traced = _can_trace(host, wanted, limits, naming)
        request = _asked(wanted, traced)
        started = stack.enter_context(detectors(sorted(wanted.cpus), request))
        for each in started:
            each.check_threshold(wanted.threshold_ns)
        traces: list[tracefs.Instance] = []
        alone: dict[int, float] = {}
        if traced:
            with _counting_instead(limits, naming):
                traces = open_traces(host, wanted.cpus, facts.online, stack)
        if not traces:
            alone = {each.cpu: each.interruption() for each in started}
        with _on(traces):
            costs = _costs(traces[0], started) if traces else []
            processors = [_Processor(each, host) for each in started]
            for each in started:
                each.ready()
            for trace in traces:
                trace.forget()
            tasks = {} if traces else run_times(host)
            with _counting(processors):
                before = counters.read(host, wanted.cpus, clock.now)
                wait(started, wanted.seconds, _draining(traces, tick))
                after = counters.read(host, wanted.cpus, clock.now)
            tasks_since = [] if traces else ran(host, tasks)
            for each in started:
                each.leave()
            for processor in processors:
                processor.after()
        both = Clock(first, clock.moment())
        watched = {each.cpu: each.result() for each in started}
        seconds = max(both.ns(each.end - each.begin) for each in watched.values()) / 1e9
        given = {cpu: wanted.applied | boot_parameters(facts, cpu) for cpu in watched}
        together = cpulist.format(wanted.cpus | facts.nohz_full)
        result = NoiseMeasurement(
            both, seconds, hypervisor(facts), "", limits, given, {}, together, absent_parameters(facts), "".join(naming)
        )
        if traces:
            result.source = f"kernel tracing, clock {traces[0].clock}"
            _attribute(result, host, traces, watched, before, after)
        else:
            result.source = "the times of the gaps, the detector's own counters and the kernel's counts"
            _fold(result, watched, before, after, alone)
            for cpu, on in result.cpus.items():
                on.tasks = [task for task in tasks_since if task.cpu == cpu and task.tid != on.watched.pid]
        for processor in processors:
            on = result.cpus[processor.cpu]
            result.smi_source = processor.report(on, both)
            # one value for all CPUs: they run the same kernel code, and differences are noise
            on.event_cost = median(costs) if costs else None
        return result


class _Processor:
    """The processor of a detector's CPU.

    Chains measure its frequency right before and right after the detector runs; its counters count in between.
    """

    def __init__(self, on: Detector, host: Host) -> None:
        self.cpu, self._detector, self._host = on.cpu, on, host
        self._facts, self._timed = on.chain_facts(), on.chains()
        self._cycles = FrequencyCounter(host, frozenset({on.cpu}), on.pid)
        self._smis = SmiCounter(host, frozenset({on.cpu}))

    def count(self) -> None:
        """Start counting; called before the watch."""
        self._cycles.start()
        self._smis_before = self._smis.read()

    def counted(self) -> None:
        """Stop counting; called after the watch."""
        self._smis_after = self._smis.read()
        self._smis.close()
        self._cycles.stop()

    def after(self) -> None:
        """Read the chains that the detector timed after the watch; call this after leave()."""
        self._timed += self._detector.chains_after()

    def report(self, on: OnCpu, both: Clock) -> str:
        """Store the results in `on`. Returns the source of the SMI counts, or the reason why there are none.

        `both`: the rate of the detector's clock.
        """
        on.ran = self._cycles.result()
        if self.cpu in self._smis_before and self.cpu in self._smis_after:
            on.firmware = self._smis_after[self.cpu] - self._smis_before[self.cpu]
        name_smis(on.account, on.firmware)
        if self._facts:
            on.frequency = core_frequency.judged(self.cpu, self._timed, self._facts, both.per_second)
        folder = f"/sys/devices/system/cpu/cpu{self.cpu}/cpufreq"
        low, high = (self._host.text(f"{folder}/scaling_{which}_freq") for which in ("min", "max"))
        on.fixed_hz = float(high) * 1000 if high and high == low and high.isdecimal() else None
        return self._smis.source


@contextlib.contextmanager
def _counting(processors: Sequence[_Processor]) -> Iterator[None]:
    for each in processors:
        each.count()
    try:
        yield
    finally:
        for each in processors:
            each.counted()


def _costs(trace: tracefs.Instance, detectors: Sequence[Detector]) -> list[float]:
    """The cost of tracing one event on each CPU, in ticks, from page faults with and without tracing.

    Empty if the kernel cannot trace page faults. Traced and untraced faults alternate, because a processor's speed
    changes, especially in a guest.
    """
    if not trace.has(PAGE_FAULT):
        return []
    lengths_by: dict[bool, list[list[int]]] = {False: [], True: []}
    for _ in range(TURNS):
        for traced, lengths in lengths_by.items():
            trace.switch(PAGE_FAULT, traced)
            lengths.append([each.fault() for each in detectors])
    without, within = ([min(each) for each in zip(*lengths, strict=True)] for lengths in lengths_by.values())
    return [max(b - a, 0) for a, b in zip(without, within, strict=True)]


def _asked(wanted: NoiseRequest, traced: bool) -> DetectorRequest:
    rate = _ticks_per_second()
    threshold = None if wanted.threshold_ns is None else max(1, round(wanted.threshold_ns * rate / 1e9))
    look = 0 if traced else round(LOOK_NS * rate / 1e9)
    capacity = min(detector.CAPACITY, detector.MEMORY // detector.GAP_BYTES // len(wanted.cpus))
    return DetectorRequest(round(wanted.seconds * rate), threshold, look, capacity, wanted.fifo)


def _ticks_per_second() -> float:
    """Estimate the clock's rate to within a few parts in ten thousand, which is enough to convert options.

    The rate for the report is measured over the window.
    """
    first = clock.moment()
    while clock.moment().raw_ns - first.raw_ns < 20_000_000:
        pass
    return Clock(first, clock.moment()).per_second


def _can_trace(host: Host, wanted: NoiseRequest, limits: list[str], naming: list[str]) -> bool:
    """Whether the kernel's tracing is usable; if not, add the reason to `limits` and the remedy to `naming`."""
    if not wanted.trace:
        limits.append("kernel tracing was not requested")
        return False
    with _counting_instead(limits, naming):
        tracefs.check(host)
        return True
    return False


@contextlib.contextmanager
def _counting_instead(limits: list[str], naming: list[str]) -> Iterator[None]:
    try:
        yield
    except tracefs.NoTraceError as error:
        limits.append(f"no kernel tracing, so causes are found by counting: {error}")
        naming.append(error.naming)


def open_traces(
    host: Host, cpus: CpuSet, online: CpuSet, stack: contextlib.ExitStack, of: str = ""
) -> list[tracefs.Instance]:
    """Trace these CPUs, with a buffer of BUFFER_KB KiB for each, and the CPUs that send interrupts to them.

    Both traces end with the stack. `of` becomes part of the instances' names. Raises NoTraceError if the kernel
    cannot trace or does not permit it.
    """
    kinds = [*events.ON_THE_CPU, *events.vectors(host.names(f"{tracefs.mount(host)}/events/irq_vectors"))]
    small = max(64, SENDERS_KB // len(online))
    return [
        stack.enter_context(tracefs.Instance(host, cpus, kinds, BUFFER_KB, f"{of}cpus")),
        stack.enter_context(tracefs.Instance(host, online, decode.SENDING, small, f"{of}senders")),
    ]


def _draining(traces: list[tracefs.Instance], tick: Tick) -> Tick:
    """A callback that periodically empties the kernel's trace buffers and then calls `tick`."""
    last = 0.0

    def drain(passed: float) -> bool:
        nonlocal last
        if passed - last >= DRAIN_S:
            last = passed
            for each in traces:
                each.drain()
        return tick(passed)

    return drain


@contextlib.contextmanager
def _on(traces: list[tracefs.Instance]) -> Iterator[None]:
    for each in traces:
        each.on()
    try:
        yield
    finally:
        for each in traces:
            each.off()


def _attribute(
    result: NoiseMeasurement,
    host: Host,
    traces: list[tracefs.Instance],
    watched: dict[int, Watched],
    before: Counters,
    after: Counters,
) -> None:
    mine, theirs = traces
    comm = decode.comms(host, mine.mount)
    symbol = decode.Symbols(host, mine.mount)
    convert = result.clock.converter(mine.clock)
    if gone := sum(theirs.lost(cpu) for cpu in theirs.cpus):
        result.limits.append(f"{gone:,} IPI send events did not fit into the trace: some senders are unknown")
    senders = decode.sent(theirs, frozenset(watched), convert, decode.titles(comm), symbol)
    for cpu, seen in watched.items():
        traced = decode.events(mine, cpu, symbol, convert, result.clock.ticks)
        if decode.foreign(traced, seen.pid):
            result.limits.append(f"CPU {cpu}: the detector itself is reported as a task: {decode.FOREIGN}")
        lost = mine.lost(cpu)
        begin, end = (traced[0].time, traced[-1].time) if traced else (seen.begin, seen.end)
        whole_until = end if lost else max(seen.end, end)
        frames = build(traced, min(begin, seen.begin), max(end, seen.end), frozenset({0, seen.pid}))
        reach = result.clock.ticks(SENT_BEFORE_NS)
        name = namer(Senders(senders, cpu, reach), comm)
        done = account(
            seen.gaps, frames, (seen.begin, seen.end), name, result.clock.ticks, whole_until, bool(result.virtual)
        )
        if lost:
            full = result.clock.ns(end - seen.begin) / 1e9
            result.limits.append(f"CPU {cpu}: the trace was full after {max(full, 0):.1f} s; {lost:,} events were lost")
        result.cpus[cpu] = OnCpu(
            seen,
            done,
            compare(cpu, before, after, None if lost else frames),
            *_others(cpu, before, after),
            lost_events=lost,
            events=len(traced),
            tick_kept=Counter(each.name for each in traced if each.kind == events.TICK_KEPT),
        )


def _fold(
    result: NoiseMeasurement, watched: dict[int, Watched], before: Counters, after: Counters, alone: Mapping[int, float]
) -> None:
    """Attribute the gaps of each CPU without a trace.

    `alone`: the time of one timer interrupt on each CPU, in ticks.
    """
    period_ns = clock.tick_ns()
    for cpu, seen in watched.items():
        interrupts = compare(cpu, before, after, None)
        counted = {label: each.counted for label, each in interrupts.items() if label not in NOT_INTERRUPTS}
        timer = sum(counted.pop(label) for label in list(counted) if label == "LOC" or interrupts[label].text in TIMERS)
        rest = sum(counted.values())
        looked = result.clock.ticks(LOOK_NS)
        known = attribute_untraced.CountedEvidence(
            timer, rest, seen.faults, period_ns, looked, alone[cpu], bool(result.virtual)
        )
        done = attribute_untraced.account(seen.gaps, result.clock, known)
        result.cpus[cpu] = OnCpu(seen, done, interrupts, *_others(cpu, before, after))


def _others(cpu: int, before: Counters, after: Counters) -> tuple[dict[str, int], float | None]:
    old, new = before.softirqs[cpu], after.softirqs[cpu]
    soft = {name: new[name] - old.get(name, 0) for name in new if new[name] != old.get(name, 0)}
    stolen = None
    if cpu in before.stolen and cpu in after.stolen:
        stolen = (after.stolen[cpu] - before.stolen[cpu]) * 1000 / os.sysconf("SC_CLK_TCK")
    return soft, stolen
