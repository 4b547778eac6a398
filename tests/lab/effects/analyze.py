"""Find effects in counts with and without a knob. Plain values in, plain values out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from math import log
from statistics import mean, variance
from typing import Any, NamedTuple

from cbench.stats.distributions import beta_cdf

ALPHA = 0.01  # over all causes of all knobs of a machine
LEAST_PER_S = 0.5
REPETITIONS = 20  # whose range is the usual one


@dataclass(frozen=True, slots=True)
class Removed:
    """A cause that a knob removes, in events per second without and with it."""

    cause: str
    without_per_s: float
    with_per_s: float

    @property
    def removed_per_s(self) -> float:
        return self.without_per_s - self.with_per_s


class Usual(NamedTuple):
    """A cause without a knob: its events in so many seconds, their dispersion, and the range of its rates.

    The dispersion is the variance of its counts in units of their mean.
    """

    events: int
    seconds: float
    dispersion: float
    low_per_s: float
    high_per_s: float


@dataclass(frozen=True, slots=True)
class Effect:
    """The effects of a knob on a machine. `removed` and `added`: the largest first; none: no effect was seen."""

    knob: str
    machine: str
    kernel: str
    removed: tuple[Removed, ...]
    added: tuple[Removed, ...]
    refused: str = ""


def rarer(without: float, without_s: float, with_it: float, with_s: float) -> float:
    """The p of "not rarer with it" for two Poisson counts, given their sum (Przyborowski and Wilenski, 1940)."""
    share = with_s / (with_s + without_s)
    return beta_cdf(1 - share, share, without, with_it + 1) if without else 1.0


def _usual(rows: Collection[Mapping[str, Any]]) -> dict[str, Usual]:
    """Each cause over all repetitions without a knob."""
    seconds = sum(row["none"]["seconds"] for row in rows)
    found = {}
    for cause in {cause for row in rows for cause in row["none"]["causes"]}:
        counts = [row["none"]["causes"].get(cause, 0) for row in rows]
        rates = [count / row["none"]["seconds"] for count, row in zip(counts, rows, strict=True)]
        dispersion = max(1.0, variance(counts) / mean(counts) if len(counts) > 1 else 1.0)
        found[cause] = Usual(sum(counts), seconds, dispersion, min(rates), max(rates))
    return found


def _compared(
    row: Mapping[str, Any], rows: Collection[Mapping[str, Any]], usual: Mapping[str, Usual], alpha: float
) -> Iterator[Removed]:
    """The causes that are at most half or at least twice as frequent, which the counts show.

    Counts are divided by their dispersion first (quasi-Poisson; McCullagh and Nelder, Generalized Linear Models, 1989),
    except where the rate is less than half the lowest or more than twice the highest of 20 and more repetitions.
    """
    alone = row["alone"]
    for cause, count in usual.items():
        now = alone["causes"].get(cause, 0)
        found = Removed(cause, count.events / count.seconds, now / alone["seconds"])
        less = found.with_per_s <= found.without_per_s / 2
        if not (less or found.with_per_s >= 2 * found.without_per_s) or abs(found.removed_per_s) < LEAST_PER_S:
            continue
        beyond = found.with_per_s < count.low_per_s / 2 or found.with_per_s > 2 * count.high_per_s
        dispersion = 1.0 if beyond and len(rows) >= REPETITIONS else count.dispersion
        before = (count.events / dispersion, count.seconds)
        after = (now / dispersion, alone["seconds"])
        if (rarer(*before, *after) if less else rarer(*after, *before)) < alpha:
            yield found


def seen_from(report: Mapping[str, Any]) -> float:
    """Events a second that would have been seen to be gone in nearly every case."""
    seconds = min(row["alone"]["seconds"] for row in report["knobs"].values() if "alone" in row)
    return float(-log(_alpha(report)) / seconds)


def _alpha(report: Mapping[str, Any]) -> float:
    rows = [row for row in report["knobs"].values() if "refused" not in row]
    causes = {cause for row in rows for cause in row["none"]["causes"]}
    return ALPHA / max(len(rows) * len(causes), 1)


def effects(reports: Mapping[str, Mapping[str, Any]]) -> list[Effect]:
    """Of each knob on each machine, from the guests' reports."""
    made = []
    for machine, report in reports.items():
        rows = {knob: row for knob, row in report["knobs"].items() if "refused" not in row}
        alpha, usual = _alpha(report), _usual(rows.values())
        for knob, row in report["knobs"].items():
            seen = list(_compared(row, rows.values(), usual, alpha)) if knob in rows else []
            seen.sort(key=lambda each: -abs(each.removed_per_s))
            removed = tuple(each for each in seen if each.removed_per_s > 0)
            added = tuple(each for each in seen if each.removed_per_s < 0)
            made.append(Effect(knob, machine, report["kernel"], removed, added, row.get("refused", "")))
    return made


def left(report: Mapping[str, Any]) -> list[tuple[str, float]]:
    """The remaining interruptions with all knobs, in events per second, the most frequent first."""
    rates = {cause: count / report["all"]["seconds"] for cause, count in report["all"]["causes"].items()}
    return sorted(rates.items(), key=lambda item: -item[1])
