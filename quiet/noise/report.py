"""What is reported of a measurement: plain numbers in nanoseconds, and the verdict by budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quiet.noise import clock
from quiet.noise.attribute import HOST, STALL, UNKNOWN, Cause, Total
from quiet.noise.budgets import Budgets
from quiet.noise.interrupt_crosscheck import NOT_INTERRUPTS
from quiet.noise.measure import NoiseMeasurement, OnCpu
from quiet.noise.names import inside, label
from quiet.noise.remedies import BOOT, KNOB, Remedy, remedy
from quiet.noise.units import show

Json = dict[str, object]
LONG_NS = 1_000  # gaps above this have to have a cause


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A budget that a CPU has exceeded."""

    cpu: int
    budget: str
    limit: float
    found: float

    @property
    def text(self) -> str:
        """For people."""
        return f"CPU {self.cpu}: {self.budget} {self._show(self.found)}, allowed {self._show(self.limit)}"

    def _show(self, value: float) -> str:
        if self.budget == "max-gap":
            return show(value)
        return f"{value:.3g} " + ("%" if self.budget == "max-lost" else "a second")


def lost_pct(on: OnCpu, ticks: float | None = None) -> float:
    """The share of the time that the CPU was lost for its task, or that `ticks` are of it."""
    watched = on.watched
    return 100 * (watched.lost if ticks is None else ticks) / max(watched.end - watched.begin, 1)


def interrupts(on: OnCpu) -> int:
    """All interrupts that the kernel counted on the CPU."""
    return sum(each.counted for name, each in on.interrupts.items() if name not in NOT_INTERRUPTS)


def judge(measured: NoiseMeasurement, budgets: Budgets) -> list[Exceeded]:
    """The budgets that were exceeded; none: quiet."""
    found = []
    for cpu, on in sorted(measured.cpus.items()):
        seconds = measured.clock.ns(on.watched.end - on.watched.begin) / 1e9
        values = (
            ("max-lost", budgets.lost_pct, lost_pct(on)),
            ("max-gap", budgets.gap_ns, measured.clock.ns(on.watched.longest)),
            ("max-interrupts", budgets.interrupts, interrupts(on) / seconds if seconds else 0.0),
        )
        found += [
            Exceeded(cpu, name, limit, value) for name, limit, value in values if limit is not None and value > limit
        ]
    return found


def limits_of(measured: NoiseMeasurement) -> list[str]:
    """What the measuring had to do without, each once."""
    own = (text for on in measured.cpus.values() for text in on.watched.limits)
    return list(dict.fromkeys([*measured.limits, *own]))


def by_cost(totals: Mapping[Cause, Total]) -> list[tuple[Cause, Total]]:
    """Causes, the costliest first."""
    return sorted(totals.items(), key=lambda item: (-item[1].total, -item[1].count, item[0]))


def share(on: OnCpu, kinds: Sequence[str] | None) -> float:
    """The percentage of the time that causes of these kinds took; None: of all kinds."""
    totals = on.account.totals.items()
    return lost_pct(on, sum(total.total for cause, total in totals if kinds is None or cause.kind in kinds))


def percentile(histogram: Mapping[int, int], q: float) -> int:
    """The bucket (its lowest value) in which the gap of rank q lies; 0 without gaps."""
    rank, seen = q * sum(histogram.values()), 0
    for low, count in sorted(histogram.items()):
        seen += count
        if seen >= rank:
            return low
    return 0


def unattributed(on: OnCpu, long: int) -> int:
    """Gaps from a length on whose larger part has no cause."""
    return sum(each.gap.length >= long and each.parts[0][0].kind == UNKNOWN for each in on.account.explained)


def remedy_text(item: Remedy) -> str:
    """A remedy in a line."""
    lead = {KNOB: f"knob {item.what}", BOOT: f"boot with {item.what}"}.get(item.how)
    return f"{lead}: {item.text}" if lead else item.text


def cpu_shape(measured: NoiseMeasurement, cpu: int) -> Json:
    """One CPU's part of `quiet noise --json`."""
    on, ns = measured.cpus[cpu], measured.clock.ns
    watched = on.watched
    causes: list[Json] = []
    for cause, total in by_cost(on.account.totals):
        item = remedy(cause, cpu, measured.in_place[cpu], measured.together)
        causes.append(
            {
                "cause": label(cause),
                "kind": cause.kind,
                "inside": inside(cause) or None,
                "count": total.count,
                "total_ns": round(ns(total.total)),
                "max_ns": round(ns(total.longest)),
                "gaps": total.gaps,
                "remedy": remedy_text(item),
                "knob": item.what if item.how == KNOB else None,
                "boot": item.what if item.how == BOOT else None,
            }
        )
    return {
        "gaps": watched.count,
        "kept": len(watched.gaps),
        "lost_pct": lost_pct(on),
        "host_pct": share(on, (HOST,)),
        "stall_pct": share(on, (STALL,)),
        "unattributed_pct": share(on, (UNKNOWN,)) + max(lost_pct(on) - share(on, None), 0.0),
        "max_ns": round(ns(watched.longest)),
        "min_ns": round(ns(watched.shortest)),
        "percentiles_ns": {f"p{q}": round(ns(percentile(watched.histogram, q / 100))) for q in (50, 90, 99)},
        "causes": causes,
        "unattributed": unattributed(on, measured.clock.ticks(LONG_NS)),
        "interrupts": {
            name: {"text": each.text, "counted": each.counted, "traced": each.traced, "exact": each.exact}
            for name, each in on.interrupts.items()
        },
        "softirqs": on.softirqs,
        "steal_ms": on.stolen_ms,
        "smi": on.firmware,
        "lost_events": on.lost_events,
        "tick_kept": on.tick_kept,
        "tracing": {
            "events": on.events,
            "event_ns": None if on.event_cost is None else round(ns(on.event_cost)),
            "cost_pct": None if on.event_cost is None else lost_pct(on, on.events * on.event_cost),
        },
        "histogram_ns": [[round(ns(low)), count] for low, count in sorted(watched.histogram.items())],
        "looking_pct": lost_pct(on, watched.looking),
        "limits": list(watched.limits),
    }


def shape(measured: NoiseMeasurement, exceeded: Sequence[Exceeded], budgets: Budgets) -> Json:
    """The "noise" of `quiet verify --json` and `quiet noise --json`."""
    first = next(iter(measured.cpus.values())).watched
    ns = measured.clock.ns
    return {
        "duration_s": round(measured.seconds, 6),
        "source": measured.source,
        "limits": measured.limits,
        "virtual": measured.virtual or None,
        "detector": {
            "clock": clock.name(),
            "ticks_per_second": round(measured.clock.per_second),
            "loop_ns": round(ns(first.period), 2),
            "step_ns": round(ns(first.step), 2),
            "threshold_ns": round(ns(first.threshold), 1),
        },
        "cpus": {str(cpu): cpu_shape(measured, cpu) for cpu in sorted(measured.cpus)},
        "budgets": {
            "max_lost_pct": budgets.lost_pct,
            "max_gap_ns": budgets.gap_ns,
            "max_interrupts_per_s": budgets.interrupts,
        },
        "exceeded": [
            {"cpu": each.cpu, "budget": each.budget, "limit": each.limit, "found": each.found} for each in exceeded
        ],
    }
