"""From counts with and without a knob to the effects that are there. Plain values in, plain values out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cbench.stats.distributions import beta_cdf

ALPHA = 0.001  # over all causes of all knobs of a machine
LEAST_PER_S = 0.5
ALONE, LAST = "alone", "last"  # the only knob, or the one that is added to all others


@dataclass(frozen=True, slots=True)
class Removed:
    """A cause that a knob removes, in events a second without and with it; `how`: alone or last."""

    cause: str
    how: str
    without_per_s: float
    with_per_s: float

    @property
    def removed_per_s(self) -> float:
        return self.without_per_s - self.with_per_s


class Pair(NamedTuple):
    """Two measurements of a row that are compared."""

    how: str
    without: str
    with_it: str
    alpha: float


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


def _rates(rows: Iterable[Mapping[str, Any]], part: str) -> dict[str, tuple[float, float]]:
    """The lowest and the highest rate of each cause in what was measured again and again: without knobs, with all."""
    rows = list(rows)
    causes = {cause for row in rows for cause in row[part]["causes"]}
    rates = {cause: [row[part]["causes"].get(cause, 0) / row[part]["seconds"] for row in rows] for cause in causes}
    return {cause: (min(each), max(each)) for cause, each in rates.items()}


def _compared(row: Mapping[str, Any], pair: Pair, usual: Mapping[str, tuple[float, float]]) -> Iterator[Removed]:
    """The causes that a pair shows to differ: by the two counts, and beyond all repetitions of what is usual."""
    without, with_it = row[pair.without], row[pair.with_it]
    for cause in {*without["causes"], *with_it["causes"]}:
        before, after = without["causes"].get(cause, 0), with_it["causes"].get(cause, 0)
        found = Removed(cause, pair.how, before / without["seconds"], after / with_it["seconds"])
        low, high = usual.get(cause, (0.0, 0.0))
        other = found.with_per_s if pair.how == ALONE else found.without_per_s
        if abs(found.removed_per_s) < LEAST_PER_S or low <= other <= high:
            continue
        counts = (before, without["seconds"], after, with_it["seconds"])
        if rarer(*counts if found.removed_per_s > 0 else (*counts[2:], *counts[:2])) < pair.alpha:
            yield found


def effects(reports: Mapping[str, Mapping[str, Any]]) -> list[Effect]:
    """Of each knob on each machine, from the guests' reports."""
    made = []
    for machine, report in reports.items():
        rows = {knob: row for knob, row in report["knobs"].items() if "refused" not in row}
        comparisons = sum(len(row[part]["causes"]) for row in rows.values() for part in ("none", "all but it"))
        alpha = ALPHA / max(2 * comparisons, 1)
        pairs = (
            (Pair(ALONE, "none", "alone", alpha), _rates(rows.values(), "none")),
            (Pair(LAST, "all but it", "all", alpha), _rates(rows.values(), "all")),
        )
        for knob, row in report["knobs"].items():
            seen = [each for pair, usual in pairs if knob in rows for each in _compared(row, pair, usual)]
            seen.sort(key=lambda each: -abs(each.removed_per_s))
            removed = tuple(each for each in seen if each.removed_per_s > 0)
            added = tuple(each for each in seen if each.removed_per_s < 0)
            made.append(Effect(knob, machine, report["kernel"], removed, added, row.get("refused", "")))
    return made
