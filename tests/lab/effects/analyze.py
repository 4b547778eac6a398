"""From counts with and without a knob to the effects that are there. Plain values in, plain values out."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cbench.stats.distributions import beta_cdf

ALPHA = 0.001  # over all causes of all knobs of a machine
LEAST_PER_S = 0.5


@dataclass(frozen=True, slots=True)
class Removed:
    """A cause that a knob removes, in events a second without and with it."""

    cause: str
    without_per_s: float
    with_per_s: float

    @property
    def removed_per_s(self) -> float:
        return self.without_per_s - self.with_per_s


@dataclass(frozen=True, slots=True)
class Effect:
    """What was seen of a knob on a machine. `removed` and `added`: the largest first; none: no effect was seen."""

    knob: str
    machine: str
    kernel: str
    removed: tuple[Removed, ...]
    added: tuple[Removed, ...]
    refused: str = ""


def rarer(without: int, without_s: float, with_it: int, with_s: float) -> float:
    """The p of "not rarer with it" for two Poisson counts, given their sum (Przyborowski and Wilenski, 1940)."""
    share = with_s / (with_s + without_s)
    return beta_cdf(1 - share, share, without, with_it + 1) if without else 1.0


def _usual(rows: Collection[Mapping[str, Any]]) -> dict[str, tuple[float, float]]:
    """The lowest and the highest rate of each cause over all repetitions without a knob."""
    causes = {cause for row in rows for cause in row["none"]["causes"]}
    rates = {cause: [row["none"]["causes"].get(cause, 0) / row["none"]["seconds"] for row in rows] for cause in causes}
    return {cause: (min(each), max(each)) for cause, each in rates.items()}


def _compared(row: Mapping[str, Any], usual: Mapping[str, tuple[float, float]], alpha: float) -> Iterator[Removed]:
    """The causes that differ: by the two counts, and beyond all repetitions without a knob."""
    without, with_it = row["none"], row["alone"]
    for cause in {*without["causes"], *with_it["causes"]}:
        before, after = without["causes"].get(cause, 0), with_it["causes"].get(cause, 0)
        found = Removed(cause, before / without["seconds"], after / with_it["seconds"])
        low, high = usual.get(cause, (0.0, 0.0))
        if abs(found.removed_per_s) < LEAST_PER_S or low <= found.with_per_s <= high:
            continue
        counts = (before, without["seconds"], after, with_it["seconds"])
        if rarer(*counts if found.removed_per_s > 0 else (*counts[2:], *counts[:2])) < alpha:
            yield found


def effects(reports: Mapping[str, Mapping[str, Any]]) -> list[Effect]:
    """Of each knob on each machine, from the guests' reports."""
    made = []
    for machine, report in reports.items():
        rows = {knob: row for knob, row in report["knobs"].items() if "refused" not in row}
        comparisons = sum(len({*row["none"]["causes"], *row["alone"]["causes"]}) for row in rows.values())
        alpha, usual = ALPHA / max(2 * comparisons, 1), _usual(rows.values())
        for knob, row in report["knobs"].items():
            seen = list(_compared(row, usual, alpha)) if knob in rows else []
            seen.sort(key=lambda each: -abs(each.removed_per_s))
            removed = tuple(each for each in seen if each.removed_per_s > 0)
            added = tuple(each for each in seen if each.removed_per_s < 0)
            made.append(Effect(knob, machine, report["kernel"], removed, added, row.get("refused", "")))
    return made


def left(report: Mapping[str, Any]) -> list[tuple[str, float]]:
    """What still came with all knobs, in events a second, the most frequent first."""
    rates = {cause: count / report["all"]["seconds"] for cause, count in report["all"]["causes"].items()}
    return sorted(rates.items(), key=lambda item: -item[1])
