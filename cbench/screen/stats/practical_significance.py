"""Is an effect material: would samples of the sizes that people really use show it?

D. Flater, NIST TN 1855 (2014), section 4.7.1: an effect can be significant with thousands of runs and yet be less than
the interval of a sample of 40; the smallest n whose median interval is narrower than the median effect is its advice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from statistics import median

from cbench.screen.stats.subsampling import Subsampling


@dataclass(frozen=True, slots=True)
class EffectMagnitude:
    """One effect: its `magnitude` in the values' unit; `of_range`: that as a share of the distributions' range (None
    where that is 0 or unknown).

    detected_from: of each method the smallest n studied from which on the median interval is narrower than the
    magnitude; None where no n studied is enough.
    """

    magnitude: float
    of_range: float | None
    detected_from: Mapping[str, int | None]


@dataclass(frozen=True, slots=True)
class MedianWidth:
    """The median width of intervals of n values by one method, in the values' unit."""

    method: str
    n: int
    median_width: float


@dataclass(frozen=True, slots=True)
class PracticalSignificance:
    """Effects beside intervals. median_effect, largest_effect: of the magnitudes, None without effects; `range` of the
    distributions.

    enough: of each method the smallest n studied from which on the median width is below the median magnitude.
    """

    median_effect: float | None
    largest_effect: float | None
    range: float | None
    widths: tuple[MedianWidth, ...]
    enough: Mapping[str, int | None]
    effects: Mapping[str, EffectMagnitude]
    why: str | None


def material(
    effects: Mapping[str, float], spans: Sequence[float], studies: Sequence[Subsampling]
) -> PracticalSignificance:
    """Main effects by name, ranges of the treatments' distributions and their subsampling studies, all in one unit.

    Of several studies the median over treatments of the median width counts, of several ranges the median. Effects
    that are no finite numbers are left out, and that is said.
    """
    sizes = {name: abs(effect) for name, effect in effects.items() if isfinite(effect)}
    span = median(spans) if spans else None
    widths = _widths(studies)
    methods = list(dict.fromkeys(each.method for each in widths))
    by_method = {method: [each for each in widths if each.method == method] for method in methods}

    def from_on(magnitude: float) -> dict[str, int | None]:
        return {method: _first(each, lambda one: one.median_width < magnitude) for method, each in by_method.items()}

    middle = median(sizes.values()) if sizes else None
    out = [name for name in effects if name not in sizes]
    why = "there are no effects" if not sizes else f"no finite numbers: {', '.join(out)}" if out else None
    return PracticalSignificance(
        median_effect=middle,
        largest_effect=max(sizes.values(), default=None),
        range=span,
        widths=widths,
        enough=dict.fromkeys(methods) if middle is None else from_on(middle),
        effects={
            name: EffectMagnitude(size, size / span if span else None, from_on(size)) for name, size in sizes.items()
        },
        why=why,
    )


def _widths(studies: Sequence[Subsampling]) -> tuple[MedianWidth, ...]:
    """By method and n; a size counts where every study has intervals of it."""
    found: dict[tuple[str, int], list[float]] = {}
    for study in studies:
        for each in study.sizes:
            if each.q2 is not None:
                found.setdefault((each.method, each.n), []).append(each.q2)
    full = {key: width for key, width in found.items() if len(width) == len(studies)}
    methods = list(dict.fromkeys(method for method, _ in full))
    ordered = sorted(full, key=lambda key: (methods.index(key[0]), key[1]))
    return tuple(MedianWidth(method, n, median(full[method, n])) for method, n in ordered)


def _first(widths: Sequence[MedianWidth], narrow: Callable[[MedianWidth], bool]) -> int | None:
    """The smallest n from which on all are narrow."""
    found = None
    for each in reversed(widths):
        if not narrow(each):
            break
        found = each.n
    return found
