"""Find the most effective remedies on this machine, with the difference that each would make detectable.

Gains are measured: all processes are compared with the half that was least disturbed, and all trials with the
uninterrupted ones. Only the gain from more processes is computed: the square root of the factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from cbench.doctor.measure import Examination, Examined
from cbench.model import SHARED
from cbench.stats.detectable import Detectable, difference

SHOWN = 3
LEAST_GAIN = 1.1
LEAST_PROCESSES = 8
MORE = 4
"""The factor for the number of processes that halves the detectable difference."""


@dataclass(frozen=True, slots=True)
class RemedyGain:
    """A remedy and its gain. `gain`: the factor by which the smallest detectable difference shrinks; `difference`: the
    new smallest difference, as a share; `how`: the data or rule from which the gain is determined.
    """

    remedy: str
    gain: float
    difference: float
    how: str


def remedies(found: Examination, now: Detectable, seed: int, step: float = 0.0) -> tuple[RemedyGain, ...]:
    """The remedies with the largest gains: at most SHOWN, each with a gain of at least LEAST_GAIN. `now`: the
    difference without a remedy; `step`: the counter's step as a share of a headline.
    """

    def visible(headlines: Sequence[float | None]) -> float | None:
        known = [each for each in headlines if each is not None]
        enough = len(known) >= LEAST_PROCESSES
        return difference(known, now.processes, seed, step) if enough else None

    each = found.processes
    calibrated = (
        found.has_headlines and each[0].result.session.counter.calibration is not None
    )  # with calibrated cycles, selecting trials is no remedy, because calibration already selects them
    isolate = "quiet run -- cbench ..."
    quieter = _quieter_half(each, lambda one: one.others_busy)
    alone = _quieter_half(each, lambda one: one.sibling_busy)
    kept = _quieter_half(each, _stolen_share)
    threads = ", ".join(map(str, sorted(found.siblings)))
    options: list[tuple[str, float | None, str]] = [
        (
            f"keep interruptions off CPU {found.cpu}: {isolate}",
            None if found.cpu in found.isolated or calibrated else visible([one.undisturbed for one in each]),
            "from the trials that nothing interrupted",
        ),
        (
            "stop the programs on the other CPUs",
            visible([found.headline_of(one) for one in quieter]),
            "from the half of the processes during which the other CPUs were least busy",
        ),
        (
            f"keep CPU {threads}, the other thread of this core, idle",
            visible([found.headline_of(one) for one in alone]),
            "from the half of the processes during which that thread was least busy",
        ),
        (
            "an unshared core: no other guest or task on its other thread",
            visible([found.headline_of(one) for one in _quieter_half(each, shared_trials)]),
            "from the half of the processes with the fewest trials on a shared core",
        ),
        (
            "a host with fewer other guests, or dedicated CPUs",
            visible([found.headline_of(one) for one in kept]),
            "from the half of the processes with the least steal time",
        ),
        (
            "compare the lowest trials: cbench compare --headline min",
            None if calibrated else visible([float(min(t.value for t in one.result.trials)) for one in each]),
            "from the lowest trial of each process",
        ),
        (
            f"{MORE * now.processes} processes per side instead of {now.processes}",
            max(now.difference / MORE**0.5, step),
            "by the square root of their number",
        ),
    ]
    gains = [RemedyGain(remedy, now.difference / then, then, how) for remedy, then, how in options if then and then > 0]
    best = sorted((one for one in gains if one.gain >= LEAST_GAIN), key=lambda one: -one.gain)
    return tuple(best[:SHOWN])


def shared_trials(one: Examined) -> float | None:
    """The share of a process's trials during which the core was shared with its other hardware thread; None if the
    counter is not calibrated cycles.
    """
    trials = one.result.trials
    if not one.result.session.counter.calibration:
        return None
    return sum(any(cause.kind == SHARED for cause in trial.causes) for trial in trials) / len(trials)


def _stolen_share(one: Examined) -> float | None:
    stolen = one.result.session.stolen_ms
    return None if stolen is None else stolen / (1000 * one.seconds)


def _quieter_half(each: Sequence[Examined], of: Callable[[Examined], float | None]) -> list[Examined]:
    """The processes whose value, by `of`, is at most the median; empty if the value of any process is unknown or all
    values are equal.
    """
    known = [(value, one) for one in each if (value := of(one)) is not None]
    if len(known) < len(each) or len({value for value, _ in known}) < 2:
        return []
    middle = median(value for value, _ in known)
    return [one for value, one in known if value <= middle]
