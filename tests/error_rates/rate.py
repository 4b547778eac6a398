"""Define a stated rate: the share of simulated studies with a certain verdict, and the bounds of this share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

Study = Callable[[int, Path], bool]
"""Simulates the study with this number in an empty directory, and returns whether the verdict occurred. Equal numbers
give equal studies.
"""


@dataclass(frozen=True)
class Rate:
    """A stated rate. `table`: the heading of its table in the docs; `low`, `high`: bounds in %, which the simulation
    may miss by CHANCE standard errors; `weight`: the share of the requested studies that are simulated, below 1 for
    slow studies.
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
    """A measured rate: the verdict occurred in `said` of `studies` simulated studies."""

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
