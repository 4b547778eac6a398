"""Compute main effects and two-factor interactions from the treatments' means, with equal weights.

G. E. P. Box, J. S. Hunter, W. G. Hunter, Statistics for Experimenters (2nd ed. 2005), chapter 5 (two levels); R. A.
Fisher's table of residuals m_ij - m_i. - m_.j + m_.. for any number of levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Levels = NDArray[np.intp]
"""Shape (treatments, factors): numbers of levels."""


@dataclass(frozen=True, slots=True)
class MainEffect:
    """`levels`: the levels present, ascending; `means` and `counts`: mean and number of treatments per level.

    `effect`: with two levels, the second level's mean minus the first's; with more, the range of the means (see
    `signed`). `adjusted`: the same estimated by least squares in the model of all main effects, which is not biased by
    an unbalanced choice of treatments; None if the effect is aliased with another factor's.
    """

    levels: tuple[int, ...]
    means: Values
    counts: tuple[int, ...]
    effect: float
    signed: bool
    adjusted: float | None


@dataclass(frozen=True, slots=True)
class Interaction:
    """`cells`: means per combination of levels, shape (levels of the first factor, levels of the second), NaN without
    treatments; `residuals`: m_ij minus both main effects, which are estimated from the means of the cells present; NaN
    likewise. `effect`: with two levels each, half the difference of the two differences; otherwise the largest
    magnitude of a residual (see `signed`). None if a cell is missing, because the residuals then contain main effects.
    """

    first_levels: tuple[int, ...]
    second_levels: tuple[int, ...]
    cells: Values
    residuals: Values
    effect: float | None
    signed: bool


def main_effect(levels: Levels, means: Values, factor: int) -> MainEffect | None:
    """`means`: shape (treatments,); NaN is a treatment without values. None with fewer than two levels."""
    levels, means = _known(levels, means)
    present, places = np.unique(levels[:, factor], return_inverse=True)
    if present.size < 2:
        return None
    counts = np.bincount(places)
    each = np.bincount(places, weights=means) / counts
    signed = present.size == 2
    return MainEffect(
        levels=tuple(present.tolist()),
        means=each,
        counts=tuple(counts.tolist()),
        effect=_size(each),
        signed=signed,
        adjusted=_adjusted(levels, means, factor),
    )


def interaction(levels: Levels, means: Values, first: int, second: int) -> Interaction | None:
    """The interaction; None if either factor has fewer than two levels."""
    levels, means = _known(levels, means)
    ones, rows = np.unique(levels[:, first], return_inverse=True)
    twos, columns = np.unique(levels[:, second], return_inverse=True)
    if ones.size < 2 or twos.size < 2:
        return None
    shape = (ones.size, twos.size)
    counts, sums = np.zeros(shape), np.zeros(shape)
    np.add.at(counts, (rows, columns), 1)
    np.add.at(sums, (rows, columns), means)
    cells = np.full(shape, np.nan)
    np.divide(sums, counts, out=cells, where=counts > 0)
    residuals = cells - np.nanmean(cells, axis=1, keepdims=True) - np.nanmean(cells, axis=0) + np.nanmean(cells)
    signed = shape == (2, 2)
    effect: float | None = None
    if not np.isnan(cells).any():
        effect = float(np.abs(residuals).max())
        if signed:
            effect = float((cells[1, 1] - cells[0, 1]) - (cells[1, 0] - cells[0, 0])) / 2
    return Interaction(
        first_levels=tuple(ones.tolist()),
        second_levels=tuple(twos.tolist()),
        cells=cells,
        residuals=residuals,
        effect=effect,
        signed=signed,
    )


def _known(levels: Levels, means: Values) -> tuple[Levels, Values]:
    """The levels and means of treatments that have a mean."""
    some = ~np.isnan(means)
    return levels[some], means[some]


def _size(means: Values) -> float:
    return float(means[1] - means[0]) if means.size == 2 else float(means.max() - means.min())


def _adjusted(levels: Levels, means: Values, factor: int) -> float | None:
    """Estimate effects by least squares, with each factor's levels as columns, minus the first level's column."""
    columns = [
        (levels[:, [each]] == np.unique(levels[:, each])[1:]).astype(np.float64) for each in range(levels.shape[1])
    ]
    ours = columns.pop(factor)
    others = np.hstack([np.ones((means.size, 1)), *columns])
    matrix = np.hstack([others, ours])
    if np.linalg.matrix_rank(matrix) < np.linalg.matrix_rank(others) + ours.shape[1]:
        return None
    solved, *_ = np.linalg.lstsq(matrix, means, rcond=None)
    return _size(np.concatenate([[0.0], solved[others.shape[1] :]]))
