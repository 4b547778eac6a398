"""Format the report as lines of text, with `**bold**` as in cli/text.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from quiet.noise.budgets import NONE, show
from quiet.noise.command_report import plural
from quiet.noise.core_frequency import CoreFrequency
from quiet.noise.prove import Proof
from quiet.noise.report import LONG_NS, CauseReport, CpuReport, NoiseReport, RanAt, interrupts

BAR = 40
_HOST = "taken by the host, which no setting in the guest can change"
FEW = 12  # maximum number of causes shown per CPU; --json has all
FEW_TASKS = 5


def lines(report: NoiseReport) -> Iterator[str]:
    """Yield the lines of the whole report."""
    detector = report.detector
    yield (
        f"watched for {report.duration_s:.4g} s: {detector.clock}, loop {detector.loop_ns:.1f} ns, "
        f"clock step {detector.step_ns:.1f} ns, gaps of {show(detector.threshold_ns)} or more"
    )
    yield from machine(report.virtual)
    yield f"causes from {report.source}"
    for text in report.all_limits:
        yield f"  {text}"
    if not report.virtual and report.smi_source.startswith("not known"):
        yield f"  SMIs of the firmware: {report.smi_source}"
    if not report.throttled:
        yield "  throttling by heat or a power limit: unknown, because the CPUs do not count it here"
    yield "  not detected: shorter gaps, and delays that do not stop the core (a busy shared cache or memory bus)"
    for number, cpu in report.cpus.items():
        yield ""
        yield from _cpu(number, cpu, bool(report.virtual))
    if report.proof:
        yield ""
        yield from _proof(report.proof, bool(report.virtual))
    yield ""
    if report.exceeded:
        yield "**not quiet**: " + "; ".join(each.text for each in report.exceeded)
    elif report.budgets == NONE:
        yield "no budget was given (--max-lost, --max-gap, --max-interrupts), so there is no verdict"
    else:
        yield "**quiet**: within the budgets"
    yield from throttling(report.throttled)


def machine(virtual: str | None) -> Iterator[str]:
    """Yield a line that names the virtual machine; none on a physical machine."""
    if virtual:
        kind = virtual.removeprefix("hypervisor").strip(" ()")
        yield f"in a virtual machine{f': {kind}' if kind else ''}"


def throttling(counts: Mapping[int, int]) -> Iterator[str]:
    """Yield a line for each CPU that was throttled; `counts`: how often, by CPU."""
    for number, count in counts.items():
        if count:
            yield f"CPU {number} was throttled {plural(count, 'time')} because of heat or a power limit"


def _cpu(number: int, cpu: CpuReport, virtual: bool) -> Iterator[str]:
    yield (
        f"**CPU {number}**: {plural(cpu.gaps, 'gap')}, {cpu.lost_pct:.4f} % lost, longest {show(cpu.max_ns)}, "
        f"{plural(interrupts(cpu.interrupts), 'interrupt')}"
    )
    yield from _frequencies(cpu)
    if not cpu.gaps:
        counted = interrupts(cpu.interrupts)
        yield "  no interruption was as long as the threshold" if counted else "  nothing interrupted it"
        return
    values = ", ".join(f"{name} {show(length)}" for name, length in cpu.percentiles_ns.items())
    yield f"  gaps: {values}, shortest {show(cpu.min_ns)}"
    if cpu.kept < cpu.gaps:
        yield f"  the buffer was full: causes cover only the first {cpu.kept:,} gaps; raise --threshold"
    yield f"  of the time: {', '.join(_shares(cpu, virtual))}"
    if cpu.steal_ms:
        yield f"  the host reports that it stole {cpu.steal_ms:g} ms"
    if cpu.smi or (cpu.smi == 0 and not virtual):
        yield f"  {cpu.smi:,} SMIs (firmware) were counted by the processor"
    yield from _causes(cpu.causes)
    if cpu.tasks:
        first = (f"{each.task} {plural(each.count, 'time')}, {show(each.total_ns)}" for each in cpu.tasks[:FEW_TASKS])
        more = f"; and {len(cpu.tasks) - FEW_TASKS} more" if len(cpu.tasks) > FEW_TASKS else ""
        yield f"  tasks last seen here, with their times on all CPUs: {'; '.join(first)}{more}"
    if cpu.tracing.events:
        cost = "their cost was not measured"
        if cpu.tracing.event_ns is not None:
            part = cpu.tracing.cost_pct
            cost = f"at {show(cpu.tracing.event_ns)} each, {part:.4f} % of the time" if part else "too cheap to measure"
        yield f"  the tracing itself: {cpu.tracing.events:,} events, {cost}"
    for why, times in sorted(cpu.tick_kept.items()):
        yield f"  the tick could not be stopped {plural(times, 'time')}: {why}"
    if cpu.unattributed:
        yield f"  {plural(cpu.unattributed, 'gap')} of {show(LONG_NS)} or more without a cause"
    for name, line in cpu.interrupts.items():
        if line.exact is False:
            title = f"interrupt line {name} ({line.text})"
            yield f"  {title}: the kernel counted {line.counted}, the trace shows {line.traced}"
    yield ""
    yield from histogram({round(low): count for low, count in cpu.histogram_ns})


def _proof(proof: Proof, virtual: bool) -> Iterator[str]:
    if proof.why:
        yield f"--prove: nothing was measured with interrupts off: {proof.why}"
        return
    yield f"with interrupts off for {proof.off_s:.3g} s (hwlat), gaps of {show(proof.threshold_ns)} or more:"
    whose = "the hypervisor, the firmware or the hardware" if virtual else "the firmware or the hardware"
    for number, cpu in proof.cpus.items():
        smis = "" if cpu.smis is None else f"; {cpu.smis:,} SMIs were counted"
        nmis = f", {cpu.nmis:,} NMIs among them" if cpu.nmis else ""
        if cpu.gaps:
            yield f"  CPU {number}: {cpu.gaps:,}, longest {show(cpu.max_ns)}{nmis}: {whose} took the CPU{smis}"
        else:
            yield f"  CPU {number}: none{smis}"


def _frequencies(cpu: CpuReport) -> Iterator[str]:
    if cpu.ran:
        yield f"  {ran_at(cpu.ran)}"
    if cpu.frequency:
        yield f"  {core_frequency(cpu.frequency)}"


def ran_at(ran: RanAt) -> str:
    """The frequency while the CPU was measured, as one line."""
    if ran.hz is None:
        return f"frequency during the measurement unknown: {ran.source}"
    asked = f" of {ran.asked_hz / 1e9:.3f} requested" if ran.asked_hz else ""
    return f"ran at {ran.hz / 1e9:.3f} GHz{asked} ({ran.source})"


def core_frequency(core: CoreFrequency) -> str:
    """The frequency of a core right before and right after the measurement, as one line."""
    if core.hz is None or core.low_hz is None or core.high_hz is None:
        return f"frequency unknown: {core.why}"
    parts = [f"{core.hz / 1e9:.3f} GHz ({core.low_hz / 1e9:.3f} to {core.high_hz / 1e9:.3f})"]
    if core.below and core.below >= 0.005:
        parts.append(f"{core.below:.0%} of the time more than 1 % below the highest")
    if core.why:
        parts.append(core.why)
    elif core.shared and core.shared >= 0.005:
        parts.append(f"another thread ran on this core for {core.shared:.0%} of the time")
    return f"frequency before and after: {'; '.join(parts)}"


def _shares(cpu: CpuReport, virtual: bool) -> Iterator[str]:
    """Yield the percentages of the measured time by cause. Gaps that did not fit into the buffer have no cause."""
    yield f"{cpu.own_pct:.4f} % taken by this system"
    yield f"{cpu.host_pct:.4f} % {_HOST if virtual else 'untraced: firmware, hardware or exceptions'}"
    if cpu.stall_pct:
        yield f"{cpu.stall_pct:.4f} % stalls of the processor"
    if cpu.unattributed_pct >= 0.00005:
        yield f"{cpu.unattributed_pct:.4f} % without a cause"


def _causes(causes: tuple[CauseReport, ...]) -> Iterator[str]:
    rows = [("cause", "count", "total", "longest")]
    rows += [(each.cause, f"{each.count:,}", show(each.total_ns), show(each.max_ns)) for each in causes[:FEW]]
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row, text in zip(rows, ["", *(each.remedy for each in causes)], strict=False):
        yield "  " + "  ".join((row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in (1, 2, 3))))
        if text:
            yield f"      -> {text}"
    if len(causes) > FEW:
        yield f"  and {len(causes) - FEW} more causes"


def histogram(counts: Mapping[int, int], what: str = "gaps by length", unit_ns: int = 1) -> Iterator[str]:
    """Yield a heading and a bar for each doubling of the length; the bar of one unit includes shorter lengths.

    `counts`: the number of gaps or wake-ups by length in units of `unit_ns` nanoseconds; `what`: the heading.
    """
    doublings: dict[int, int] = {}
    for low, count in counts.items():
        doublings[max(low, 1).bit_length() - 1] = doublings.get(max(low, 1).bit_length() - 1, 0) + count
    if not doublings:
        return
    most = max(doublings.values()).bit_length()
    yield f"  {what} (the length of a bar is proportional to the logarithm of the count)"
    for power in range(min(doublings), max(doublings) + 1):
        count = doublings.get(power, 0)
        bar = "#" * max(round(BAR * count.bit_length() / most), 1) if count else ""
        yield f"  {show((1 << power) * unit_ns):>8} {bar.ljust(BAR)} {count or '':>9}"
