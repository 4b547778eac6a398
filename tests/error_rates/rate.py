"""One stated rate: how often something is said in simulated studies, and between which bounds that must lie."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

Study = Callable[[int, Path], bool]
"""Simulates the study with this number in an empty directory; whether the thing was said. The same number, the same
study."""


@dataclass(frozen=True)
class Rate:
    """`table`: the heading under which the docs have it; `low`, `high`: bounds in %, which the simulation may miss by
    CHANCE of its standard errors; `weight`: the share of the wanted studies that are made, for slow ones.
    """

    table: str
    name: str
    study: Study
    low: float = 0.0
    high: float = 100.0
    weight: float = 1.0

    @property
    def key(self) -> str:
        return f"{self.table}: {self.name}"


CHANCE = 3.0


@dataclass(frozen=True)
class MeasuredRate:
    """A rate in `studies` simulated ones."""

    rate: Rate
    said: int
    studies: int

    @property
    def percent(self) -> float:
        return 100 * self.said / self.studies

    def error(self, percent: float) -> float:
        """The standard error of the simulation if the true rate is `percent`."""
        share = min(max(percent / 100, 0.5 / self.studies), 1 - 0.5 / self.studies)
        return 100 * sqrt(share * (1 - share) / self.studies)

    @property
    def holds(self) -> bool:
        low, high = self.rate.low, self.rate.high
        return low - CHANCE * self.error(low) <= self.percent <= high + CHANCE * self.error(high)
