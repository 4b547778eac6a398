"""The report for people: lines of text, `**bold**` as in render.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from quiet.noise import clock
from quiet.noise.attribute import HOST, STALL, UNKNOWN
from quiet.noise.budgets import NONE, Budgets
from quiet.noise.measure import NoiseMeasurement, OnCpu
from quiet.noise.names import label
from quiet.noise.remedies import remedy
from quiet.noise.report import (
    LONG_NS,
    Exceeded,
    by_cost,
    interrupts,
    limits_of,
    lost_pct,
    percentile,
    remedy_text,
    share,
    unattributed,
)
from quiet.noise.units import show

BAR = 40
FEW = 12  # causes that are shown for a CPU; --json has all


def lines(measured: NoiseMeasurement, exceeded: Sequence[Exceeded], limits: Budgets) -> Iterator[str]:
    """The whole report."""
    first = next(iter(measured.cpus.values())).watched
    ns = measured.clock.ns
    yield (
        f"watched for {measured.seconds:.4g} s: {clock.name()}, loop {ns(first.period):.1f} ns, "
        f"clock step {ns(first.step):.1f} ns, gaps from {show(ns(first.threshold))} on"
    )
    if measured.virtual:
        kind = measured.virtual.removeprefix("hypervisor").strip(" ()")
        yield f"in a virtual machine{f': {kind}' if kind else ''}"
    yield f"causes from {measured.source}"
    for text in limits_of(measured):
        yield f"  {text}"
    yield "  not seen: what is shorter, and what does not stop the core (a shared cache or memory bus that is busy)"
    for cpu, on in sorted(measured.cpus.items()):
        yield ""
        yield from _cpu(measured, cpu, on)
    yield ""
    if exceeded:
        yield "**not quiet**: " + "; ".join(each.text for each in exceeded)
    elif limits == NONE:
        yield "no budget was given (--max-lost, --max-gap, --max-interrupts), so there is no verdict"
    else:
        yield "**quiet**: within the budgets"


def _cpu(measured: NoiseMeasurement, cpu: int, on: OnCpu) -> Iterator[str]:
    watched, ns = on.watched, measured.clock.ns
    yield (
        f"**CPU {cpu}**: {watched.count:,} gaps, {lost_pct(on):.4f} % lost, longest {show(ns(watched.longest))}, "
        f"{interrupts(on):,} interrupts"
    )
    if not watched.count:
        yield "  nothing interrupted it"
        return
    values = ", ".join(f"p{q} {show(ns(percentile(watched.histogram, q / 100)))}" for q in (50, 90, 99))
    yield f"  gaps: {values}, shortest {show(ns(watched.shortest))}"
    if len(watched.gaps) < watched.count:
        yield f"  the ring was full: causes are of the first {len(watched.gaps):,} gaps; raise --threshold"
    yield f"  of the time: {', '.join(_shares(measured, on))}"
    if on.stolen_ms:
        yield f"  the host says that it stole {on.stolen_ms:g} ms"
    if on.firmware:
        yield f"  {on.firmware} firmware interruptions (SMI) were counted"
    yield from _causes(measured, cpu, on)
    if on.events:
        cost = "their cost was not measured"
        if on.event_cost is not None:
            part = lost_pct(on, on.events * on.event_cost)
            cost = (
                f"at {show(ns(on.event_cost))} each, {part:.4f} % of the time"
                if part
                else "too cheap to tell their cost"
            )
        yield f"  the tracing itself: {on.events:,} events, {cost}"
    for why, times in sorted(on.tick_kept.items()):
        yield f"  the tick could not be stopped {times:,} times: {why}"
    if left := unattributed(on, measured.clock.ticks(LONG_NS)):
        yield f"  {left:,} gaps above {show(LONG_NS)} without a cause"
    for name, each in on.interrupts.items():
        if each.exact is False:
            line = f"interrupt line {name} ({each.text})"
            yield f"  {line}: the kernel counted {each.counted}, the trace shows {each.traced}"
    yield ""
    yield from histogram({round(ns(low)): count for low, count in watched.histogram.items()})


def _shares(measured: NoiseMeasurement, on: OnCpu) -> Iterator[str]:
    """Whose the lost time was; what no cause is known of is said to be that, also what the ring did not keep."""
    host, stall, kept = share(on, (HOST,)), share(on, (STALL,)), share(on, None)
    unknown = share(on, (UNKNOWN,)) + max(lost_pct(on) - kept, 0.0)
    whose = "the host's, which no setting in here can change" if measured.virtual else "outside of this kernel"
    yield f"{kept - host - stall - share(on, (UNKNOWN,)):.4f} % this system's own"
    yield f"{host:.4f} % {whose}"
    if stall:
        yield f"{stall:.4f} % stalls of the processor"
    if unknown >= 0.00005:
        yield f"{unknown:.4f} % without a cause"


def _causes(measured: NoiseMeasurement, cpu: int, on: OnCpu) -> Iterator[str]:
    ns = measured.clock.ns
    ranked = by_cost(on.account.totals)
    rows = [("cause", "count", "total", "longest", "")]
    remedies = [""]
    for cause, total in ranked[:FEW]:
        rows.append((label(cause), f"{total.count:,}", show(ns(total.total)), show(ns(total.longest)), ""))
        remedies.append(remedy_text(remedy(cause, cpu, measured.in_place[cpu], measured.together)))
    widths = [max(len(row[i]) for row in rows) for i in range(4)]
    for row, text in zip(rows, remedies, strict=True):
        yield "  " + "  ".join((row[0].ljust(widths[0]), *(row[i].rjust(widths[i]) for i in (1, 2, 3))))
        if text:
            yield f"      -> {text}"
    if len(ranked) > FEW:
        yield f"  and {len(ranked) - FEW} more causes"


def histogram(counts: Mapping[int, int]) -> Iterator[str]:
    """A bar for each doubling of the length; its own length goes with the logarithm of the count."""
    doublings: dict[int, int] = {}
    for low, count in counts.items():
        doublings[max(low, 1).bit_length() - 1] = doublings.get(max(low, 1).bit_length() - 1, 0) + count
    if not doublings:
        return
    most = max(doublings.values()).bit_length()
    yield "  gaps by length (a bar's length goes with the logarithm of the count)"
    for power in range(min(doublings), max(doublings) + 1):
        count = doublings.get(power, 0)
        bar = "#" * max(round(BAR * count.bit_length() / most), 1) if count else ""
        yield f"  {show(1 << power):>8} {bar.ljust(BAR)} {count or '':>9}"
