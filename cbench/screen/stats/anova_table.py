"""Compute the table of an analysis of variance: sums of squares, source by source, and sizes of effects.

Each effect is adjusted for all other effects of the same or a lower order (F. Yates, "The analysis of multiple
classifications with unequal numbers in the different classes", J. Amer. Statist. Assoc. 29 (1934) 51-66; "type II"). If
all cells have equally many values, the adjustment changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan, sqrt

import numpy as np
from numpy.typing import NDArray

from cbench.screen.design.factorial import effect_name
from cbench.screen.stats.block_tests import Effect
from cbench.screen.stats.effects import Levels, Values
from cbench.stats.distributions import f_sf
from cbench.stats.interval import scaled

WHOLE, WITHIN = "whole plots", "within plots"
WHOLE_ERROR, WITHIN_ERROR, TOTAL = "whole-plot error", "within-plot error", "total"
REPLICATES = "blocks"
"""The source of differences between blocks, or between replicates of whole plots, which are neither an error term nor
an effect to test.
"""
HIGHER = "higher orders"
"""The source with the interactions of more than two factors in one stratum."""


@dataclass(frozen=True, slots=True)
class AnovaRow:
    """A row of the table. `stratum`: WHOLE or WITHIN, None for the total. `ms`: None for the total, and without degrees
    of freedom. `f` and `p` are None for blocks, errors and the total, without degrees of freedom, and if the error is
    missing or 0. An error of 0 means that values are too coarse to show their variation; if the effect is also 0, `p`
    is 1.
    """

    source: str
    stratum: str | None
    ss: float
    df: int
    ms: float | None
    f: float | None
    p: float | None


@dataclass(frozen=True, slots=True)
class EffectEstimate:
    """The estimates of an effect: its size for two levels, otherwise the differences of levels from the first one.
    `errors`: the standard error of each estimate, with `df` degrees of freedom; NaN if the error is 0 or has no degrees
    of freedom.
    """

    estimates: tuple[float, ...]
    errors: tuple[float, ...]
    df: int


class AnovaTable:
    """Removes the contribution of each source in turn from the values, whose mean must be 0, and records the source's
    sum of squares.
    """

    def __init__(
        self,
        names: Sequence[str],
        levels: Levels,
        y: Values,
        weights: Values | None = None,
        repeats: tuple[float, int] = (0.0, 0),
    ) -> None:
        """Start from the values. `weights`: if rows are means of several values, the square roots of the numbers of
        values, by which `y` must already be multiplied. `repeats`: the sum of squares within rows, and its degrees
        of freedom.
        """
        self._names, self._levels, self._y = names, levels, y
        self._weights = (np.ones(y.size) if weights is None else weights)[:, np.newaxis]
        self._repeats = repeats
        self._basis = self._weights / np.linalg.norm(self._weights)
        self._parts: list[tuple[str, Effect, str, float, int]] = []
        self._sizes: dict[Effect, tuple[Values, Values]] = {}

    def take(self, effects: Sequence[Effect], stratum: str) -> None:
        """Add effects, each adjusted for all other effects of the same or a lower order."""
        columns = {effect: self._weights * indicators(codes(self._levels[:, list(effect)])) for effect in effects}
        for size in sorted({len(effect) for effect in effects}):
            group = [effect for effect in effects if len(effect) == size]
            for effect in group:
                others = [columns[other] for other in group if other != effect]
                basis = np.hstack([self._basis, _beyond(self._basis, np.hstack(others))]) if others else self._basis
                beyond = _beyond(basis, columns[effect])
                part = beyond.T @ self._y
                if (found := _size(beyond, part, self._levels, effect, self._weights)) is not None:
                    self._sizes[effect] = found
                self._keep(effect_name(self._names, effect), effect, stratum, part)
            self._extend(np.hstack([columns[effect] for effect in group]))

    def add(self, source: str, stratum: str, labels: NDArray[np.intp]) -> None:
        """Add the sum of squares between rows with different labels, adjusted for all earlier sources. A source without
        degrees of freedom is omitted, except the whole-plot error.
        """
        new = self._extend(self._weights * indicators(labels))
        if new.shape[1] or source == WHOLE_ERROR:
            self._keep(source, (), stratum, new.T @ self._y)

    def within(self) -> None:
        """Add the error within plots, which is the entire remainder. If rows have repeated values, the error is the
        variation between these, and the remainder counts as higher-order effects.
        """
        left = self._y - self._basis @ (self._basis.T @ self._y)
        ss, df = self._repeats
        rest = self._y.size - self._basis.shape[1]
        if df and rest:
            self._keep(HIGHER, (), WITHIN, left, rest)
        if df:
            ss = ss if ss > 1e-24 * float(self._y @ self._y) else 0.0
            self._parts.append((WITHIN_ERROR, (), WITHIN, ss, df))
        else:
            self._keep(WITHIN_ERROR, (), WITHIN, left, rest)

    def finished(self, power: int) -> tuple[tuple[AnovaRow, ...], dict[Effect, AnovaRow]]:
        """All rows, and the rows by effect, with F and p from the error of their stratum, and sums of squares
        multiplied by 2^power.
        """
        errors = self._errors
        rows, effects = [], {}
        for source, effect, stratum, ss, df in self._parts:
            error_ss, error_df = errors[stratum]
            f, p = None, None
            if source not in (WHOLE_ERROR, WITHIN_ERROR, REPLICATES) and error_df and df:
                if error_ss > 0:
                    f = ss / df / (error_ss / error_df)
                    p = f_sf(f, df, error_df)
                elif not ss:
                    p = 1.0
            rows.append(AnovaRow(source, stratum, scaled(ss, power), df, scaled(ss / df, power) if df else None, f, p))
            if effect:
                effects[effect] = rows[-1]
        ss, df = float(self._y @ self._y) + self._repeats[0], self._y.size - 1 + self._repeats[1]
        rows.append(AnovaRow(TOTAL, None, scaled(ss, power), df, None, None, None))
        return tuple(rows), effects

    def with_errors(self, strata: Mapping[Effect, str], power: int) -> dict[Effect, EffectEstimate]:
        """The sizes of effects multiplied by 2^power, with standard errors from the error of each effect's stratum."""
        estimates = {}
        for effect, (sizes, units) in self._sizes.items():
            ss, df = self._errors[strata[effect]]
            error = sqrt(ss / df) if df and ss else nan
            ours, errors = np.ldexp(sizes, power), np.ldexp(units * error, power)
            estimates[effect] = EffectEstimate(tuple(ours.tolist()), tuple(errors.tolist()), df)
        return estimates

    @property
    def _errors(self) -> dict[str, tuple[float, int]]:
        names = (WHOLE_ERROR, WITHIN_ERROR)
        return {stratum: (ss, df) for name, _, stratum, ss, df in self._parts if name in names}

    @property
    def error_df(self) -> int:
        """The degrees of freedom of the error within plots."""
        return self._errors[WITHIN][1]

    def _extend(self, columns: Values) -> Values:
        new = _beyond(self._basis, columns)
        self._basis = np.hstack([self._basis, new])
        return new

    def _keep(self, source: str, effect: Effect, stratum: str, part: Values, df: int | None = None) -> None:
        df = part.size if df is None else df
        ss = float(part @ part)
        least = 1e-24 * float(self._y @ self._y)  # ignore variance due to rounding
        self._parts.append((source, effect, stratum, ss if df and ss > least else 0.0, df))


def _size(
    beyond: Values, part: Values, levels: Levels, effect: Effect, weights: Values
) -> tuple[Values, Values] | None:
    """The sizes of an EffectEstimate, and their standard errors for an error of 1. None for partly aliased effects, and
    for interactions of factors with more than two levels.
    """
    present = [np.unique(levels[:, each]) for each in effect]
    if len(effect) == 1:
        coded = (levels[:, list(effect)] == present[0][1:]).astype(np.float64)
    elif all(each.size == 2 for each in present):
        signs = [np.where(levels[:, at] == each[1], 1.0, -1.0) for at, each in zip(effect, present, strict=True)]
        coded = np.prod(signs, axis=0)[:, np.newaxis] / 2
    else:
        return None
    if part.size < coded.shape[1]:
        return None
    inverse = np.linalg.inv(beyond.T @ (weights * coded))
    return inverse @ part, np.sqrt((inverse**2).sum(axis=1))


def indicators(labels: NDArray[np.intp]) -> Values:
    """Indicator columns, one per label: 1 for rows with this label, otherwise 0."""
    values, at = np.unique(labels, return_inverse=True)
    columns = np.zeros((at.size, values.size))
    columns[np.arange(at.size), at] = 1.0
    return columns


def _beyond(basis: Values, columns: Values) -> Values:
    """An orthonormal basis of the part of `columns` that is orthogonal to `basis`."""
    for _ in range(2):  # a single pass leaves rounding errors
        columns = columns - basis @ (basis.T @ columns)
    left, sizes, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left[:, sizes > 1e-8])


def codes(levels: Levels) -> NDArray[np.intp]:
    """A group number for each row; equal rows have equal numbers."""
    if not levels.shape[1]:
        return np.zeros(levels.shape[0], dtype=np.intp)
    _, at = np.unique(levels, axis=0, return_inverse=True)
    return np.asarray(at.ravel(), dtype=np.intp)
