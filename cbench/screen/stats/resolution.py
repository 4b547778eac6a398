"""Detect responses whose steps are as coarse as their noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from cbench.screen.stats.effects import Values
from cbench.screen.stats.signed_rank import common_step

FEW_STEPS = 5
"""A treatment's values are coarse if they range over no more than this many steps."""
ENOUGH = 3
"""The fewest values of a treatment from which its spread is judged."""


@dataclass(frozen=True, slots=True)
class CoarseClock:
    """The coarse steps of a response. `step`: the step of the clock in the values' unit; `range`: the range of a
    treatment's values in steps, as the median over treatments.
    """

    step: float
    range: float


def coarse(samples: Sequence[Values]) -> CoarseClock | None:
    """Detect coarse steps in a response. `samples`: the values by treatment. None if steps are fine relative to the
    spread, or if there are too few values.
    """
    samples = [each for each in samples if each.size >= ENOUGH]
    if not samples:
        return None
    every = np.unique(np.concatenate(samples))
    n = sum(each.size for each in samples)
    spans = [float(each.max() - each.min()) for each in samples]
    if every.size < 2 or 2 * every.size > n or not max(spans) > 0:
        return None
    apart = np.diff(every)
    step = common_step(apart[apart > 1e-9 * float(np.abs(every).max())])
    if not step or median(spans) > (FEW_STEPS + 0.5) * step:
        return None
    return CoarseClock(step, round(median(spans) / step, 6))


def coarse_words(name: str, clock: CoarseClock, unit: str) -> str:
    """The coarse steps as one sentence."""
    step = f"{clock.step:.4g} {unit}".strip()
    return (
        f"{name}: read in steps of {step}, and values of one treatment range over {clock.range:.3g} of them: effects "
        "smaller than a step are barely detectable; measure longer, or with a finer clock"
    )
