"""Trials in sequence while the frequency of their CPU is changed once at half time, as in the thesis's figure 5-1.

Source: D. Kozak, "Chasing Zero Variability in Software Performance", MIT.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import Any

from cbench.interfere.stats import lowest
from cbench.measure import measurement
from cbench.model import Params, Result, Workload
from cbench.run import result as report
from cbench.step.frequency import Policy, held
from quiet.errors import UsageError
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.noise.clock import Clock, moment

LEAST_SIDE = 5
"""Trials on each side of a shift."""

SEEN = 0.02
"""A smaller change of the median time is not called an effect of the step,"""

GROUPS = 8
"""nor one that is not twice as large as what this many groups of trials differ by on one side of it."""

Show = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Stepped:
    """`written`: how many trials had ended when the frequency was written. `times`: of the trials, in ns.

    `seen`: what the kernel says of the frequency (kHz) before and after, None where it does not.
    """

    result: Result
    written: int
    times: tuple[float, ...]
    seen: tuple[int | None, int | None]


def run(
    workload: Workload,
    params: Params,
    cpu: int,
    isolated: frozenset[int],
    options: measurement.MeasureOptions,
    found: Policy,
    frequencies: tuple[int, int],
    show: Show,
) -> Stepped:
    """Measure; the step is written between two chunks of trials, so no trial holds it. UsageError when too late."""
    written: list[int] = []
    seen: list[int | None] = []
    first = moment()
    with held(Host(), found, frequencies[0]) as change:

        def progress(text: str, done: int, total: int) -> None:
            show(text, done, total)
            if not written and 2 * done >= total:
                seen.append(_frequency(found))
                change(frequencies[1])
                written.append(done)

        results = measurement.measure([workload], [params], [cpu], isolated=isolated, options=options, show=progress)
        seen.append(_frequency(found))
    trials = results[0].session.trials
    if not written or written[0] + LEAST_SIDE > len(trials):
        raise UsageError(f"{len(trials):,} trials had ended before the frequency was changed: more --trials, or larger")
    clock = Clock(first, moment())
    times = tuple(clock.ns(trial.end - trial.begin) for trial in trials)
    return Stepped(results[0], written[0], times, (seen[0], seen[-1]))


def _frequency(found: Policy) -> int | None:
    text = Reader().text(f"{found.base}scaling_cur_freq") or ""
    return int(text) if text.isdecimal() else None


def shift(times: Sequence[float]) -> int:
    """The trial from which on the series differs most from what was before (largest variance between the sides).

    The highest 5 % are cut down first: a single interruption must not look like a shift.
    """
    cap = sorted(times)[int(len(times) * 0.95)]
    sums = list(accumulate(min(time, cap) for time in times))
    count, total = len(sums), sums[-1]

    def between(at: int) -> float:
        left = sums[at - 1]
        return at * (count - at) * (left / at - (total - left) / (count - at)) ** 2

    return max(range(LEAST_SIDE, count - LEAST_SIDE + 1), key=between)


def wobble(times: Sequence[float]) -> float:
    """How far the median of a group of successive trials lies from that of all of them, at most, as a share."""
    size = max(len(times) // GROUPS, 1)
    middle = median(times)
    return max(abs(median(times[at : at + size]) / middle - 1) for at in range(0, len(times) - size + 1, size))


def step_dict(stepped: Stepped, found: Policy, frequencies: tuple[int, int], host: dict[str, object]) -> dict[str, Any]:
    """The object of `cbench step --json`."""
    result = stepped.result
    values = [trial.value for trial in result.session.trials]
    sides = (slice(None, stepped.written), slice(stepped.written, None))
    before, after = (_side(values[side], stepped.times[side]) for side in sides)
    at = shift(stepped.times)
    ratio = after["median_ns"] / before["median_ns"]
    least = max(SEEN, *(2 * wobble(stepped.times[side]) for side in sides))
    made: dict[str, Any] = {
        "workload": result.workload.name,
        "params": dict(result.params),
        "cpu": result.cpu,
        "counter": report.counter_dict(result.session.counter),
        "host": host,
        "policy": {"number": found.number, "cpus": sorted(found.cpus), "driver": found.driver},
        "from_khz": frequencies[0],
        "to_khz": frequencies[1],
        "seen_khz": list(stepped.seen),
        "written_after": stepped.written,
        "shift_at": at,
        "shift_seen": abs(ratio - 1) > least,
        "shift_least": least,
        "time_ratio": ratio,
        "outputs": len({trial.output for trial in result.trials}),
        "before": before,
        "after": after,
        "trials": values,
        "trials_ns": [round(time, 1) for time in stepped.times],
    }
    return {**made, "verdict": verdict(made)}


def _side(values: Sequence[int], times: Sequence[float]) -> dict[str, Any]:
    low, repeats = lowest(values)
    return {
        "count": len(values),
        "floor": low,
        "floor_repeats": repeats,
        "median": median(values),
        "median_ns": median(times),
    }


def verdict(made: dict[str, Any]) -> str:
    """What the step did to time and to the counter, in words."""
    before, after, unit = made["before"], made["after"], made["counter"]["unit"]
    change = 100 * (after["median"] / before["median"] - 1)
    line = (
        f"{made['from_khz'] / 1000:g} to {made['to_khz'] / 1000:g} MHz after trial {made['written_after']:,}: "
        f"time {before['median_ns'] / 1e3:,.1f} to {after['median_ns'] / 1e3:,.1f} us a trial "
        f"(x {made['time_ratio']:.3f}; the frequencies' ratio is {made['from_khz'] / made['to_khz']:.3f}), "
        f"{unit} {change:+.2f} %"
    )
    if made["outputs"] > 1:
        line += f"; non-deterministic: {made['outputs']:,} different results, so the trials did different work"
    if made["shift_seen"]:
        return f"{line}; the series shifts at trial {made['shift_at']:,}"
    least = f"{100 * made['shift_least']:.1f} %"
    return f"{line}; no shift beyond {least} in the series: the step had no visible effect on the speed here"
