"""Compute main effects and two-factor interactions from the treatments' means, with equal weights.

Sources: G. E. P. Box, J. S. Hunter, W. G. Hunter, Statistics for Experimenters (2nd ed. 2005), chapter 5 (two levels);
R. A. Fisher's table of residuals m_ij - m_i. - m_.j + m_.. for any number of levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Levels = NDArray[np.intp]
"""The numbers of levels, shape (treatments, factors)."""


@dataclass(frozen=True, slots=True)
class MainEffect:
    """The main effect of a factor. `levels`: the levels that occur, ascending; `means` and `counts`: the mean and the
    number of treatments per level.

    `effect`: with two levels (`signed`), the second level's mean minus the first's; with more, the range of the means.
    `adjusted`: the effect estimated by least squares in the model of all main effects, which an unbalanced choice of
    treatments does not bias; None if the effect is aliased with another factor's effect.
    """

    levels: tuple[int, ...]
    means: Values
    counts: tuple[int, ...]
    effect: float
    signed: bool
    adjusted: float | None


@dataclass(frozen=True, slots=True)
class Interaction:
    """The interaction of two factors. `cells`: means per combination of levels, shape (levels of the first factor,
    levels of the second), NaN for cells without treatments; `residuals`: m_ij minus both main effects, which are
    estimated from the cells that have treatments; NaN for cells without treatments. `effect`: with two levels each
    (`signed`), half the difference of the two differences; otherwise the largest magnitude of a residual. `effect` is
    None if a cell is missing, because the residuals then contain main effects.
    """

    first_levels: tuple[int, ...]
    second_levels: tuple[int, ...]
    cells: Values
    residuals: Values
    effect: float | None
    signed: bool


def main_effect(levels: Levels, means: Values, factor: int) -> MainEffect | None:
    """The main effect of a factor; None if fewer than two levels occur. `means`: shape (treatments,), NaN for
    treatments without values.
    """
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
    """The interaction of two factors; None if fewer than two levels of either one occur."""
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
    """The effect estimated by least squares, with a column for each level of each factor except the first level; None
    if aliased.
    """
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
