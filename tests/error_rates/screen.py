"""False alarms and power of `cbench screen analyze`: simulated experiments, from the rows of a table to the verdict."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from cbench.screen.analysis import samples
from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.analysis.result import ScreenResult
from tests.cbench.screen.screens import screened, table
from tests.error_rates.rate import Rate, Study

Rows = list[dict[str, Any]]
Make = Callable[[np.random.Generator], Rows]
Said = Callable[[ScreenResult], bool]
NOISE: dict[str, Callable[[np.random.Generator], float]] = {
    "normal": lambda draw: float(draw.normal()),
    "log-normal": lambda draw: float(draw.lognormal(0, 0.5)),
    "exponential": lambda draw: float(draw.exponential()),
    "2 % outliers of 10 sd": lambda draw: float(draw.normal() + 10 * (draw.random() < 0.02)),
    "coarse clock": lambda draw: float(np.round(draw.exponential(2)) / 2),
    "two modes": lambda draw: float(draw.normal() + 10 * (draw.random() < 0.2)),
}
CELLS = tuple(product((0, 1), (0, 1), (0, 1)))
FALSE, POWER = "`cbench screen`: any effect reported although there is none", "`cbench screen`: detected effects"


def study(make: Make, said: Said) -> Study:
    """A study without the intervals of the treatments' means, on which no counted verdict depends."""

    def simulated(number: int, folder: Path) -> bool:
        rows = make(np.random.default_rng([number, 1855]))
        with mock.patch.object(samples, "samples", return_value=()):
            return said(screened(table(folder / "data.csv", rows), ScreenOptions(subsamples=0))[0])

    return simulated


def cube(kind: str, iterations: int, effect: float = 0.0, failed: float = 0.0) -> Make:
    """Two levels of a, b and c, on a host that drifts at random by one standard deviation per iteration."""

    def make(draw: np.random.Generator) -> Rows:
        rows: Rows = []
        level = 0.0
        for iteration in range(iterations):
            level += float(draw.normal())
            for number in draw.permutation(len(CELLS)).tolist():
                a, b, c = CELLS[number]
                value: float | str = level + NOISE[kind](draw) + effect * a
                value = "" if draw.random() < failed else value
                rows.append({"iteration": iteration, "a": a, "b": b, "c": c, "value": value})
        return rows

    return make


def by_value(kind: str) -> Make:
    """A table without iterations and with rows sorted by value."""

    def make(draw: np.random.Generator) -> Rows:
        rows = [{"a": a, "b": b, "value": NOISE[kind](draw)} for a, b in product((0, 1), (0, 1)) for _ in range(20)]
        return sorted(rows, key=lambda row: float(row["value"]))

    return make


def boots(draw: np.random.Generator) -> Rows:
    """An inert hard factor whose six boots differ by three times the noise."""
    rows: Rows = []
    for boot in range(6):
        level = 3 * float(draw.normal())
        for iteration, b, c in product(range(3), (0, 1), (0, 1)):
            value = level + float(draw.normal())
            rows.append({"boot": boot, "iteration": iteration, "os": boot % 2, "b": b, "c": c, "value": value})
    return rows


def anything(made: ScreenResult) -> bool:
    return made.factors_matter


def boxes(made: ScreenResult) -> bool:
    """Whether the verdict has a sentence about the order of levels."""
    return any(line.startswith("the same order of levels") for line in made.verdict)


def a_matters(made: ScreenResult) -> bool:
    return all(row.effects["a"].significant for row in made.responses.values())


def null(name: str, make: Make, said: Said = anything) -> Rate:
    return Rate(FALSE, name, study(make, said), high=5)


def found(name: str, make: Make) -> Rate:
    return Rate(POWER, name, study(make, a_matters), low=75)


RATES = (
    *(null(f"{many} iterations, {kind}", cube(kind, many)) for many in (20, 12, 4) for kind in NOISE),
    *(null(f"one iteration, {kind}", cube(kind, 1)) for kind in ("normal", "log-normal")),
    *(null(f"no iterations, rows sorted by value, {kind}", by_value(kind)) for kind in NOISE),
    null("12 iterations, a tenth of the trials failed", cube("log-normal", 12, failed=0.1)),
    null("hard factor, boots of 3 sd", boots),
    null("hard factor, boots of 3 sd: agreement of its block plot reported", boots, boxes),
    found("4 iterations, 1.25 sd, normal", cube("normal", 4, 1.25)),
    found("12 iterations, 0.8 sd, log-normal", cube("log-normal", 12, 0.8)),
    found("12 iterations, a tenth of the trials failed, 0.8 sd", cube("log-normal", 12, 0.8, 0.1)),
)
"""The rates that `make error-rates` measures."""
