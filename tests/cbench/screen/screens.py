"""Synthetic screens with known answers, as files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from cbench.results import to_json
from cbench.screen.analysis.analysis import analyse
from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.analysis.result import ScreenResult
from cbench.screen.data.data import Data
from cbench.screen.data.read_table import read
from cbench.screen.data.roles import Chosen

QUICK = ScreenOptions(subsamples=50)


def table(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    """A CSV of rows with the same keys."""
    rows = list(rows)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def cross(*names: str) -> str:
    """The name of an interaction."""
    return "\N{MULTIPLICATION SIGN}".join(names)


def screened(path: Path, options: ScreenOptions = QUICK, chosen: Chosen | None = None) -> tuple[ScreenResult, Data]:
    """The analysis of a file."""
    data = read(path, chosen)
    return analyse(data, options), data


def analysed(path: Path, options: ScreenOptions = QUICK, chosen: Chosen | None = None) -> tuple[dict[str, Any], Data]:
    """The analysis of a file as `--json` has it."""
    result, data = screened(path, options, chosen)
    return as_json(result), data


def as_json(result: ScreenResult) -> dict[str, Any]:
    made = to_json(result)
    assert isinstance(made, dict)
    return made


PILOT = {"000": 60, "100": 72, "010": 54, "110": 68, "001": 52, "101": 83, "011": 45, "111": 80}
"""The pilot plant of Box, Hunter and Hunter: T, C, K."""


def pilot() -> list[dict[str, Any]]:
    return [{"T": key[0], "C": key[1], "K": key[2], "iteration": 0, "value": value} for key, value in PILOT.items()]


TWO_BY_THREE = {(0, 0): 10, (0, 1): 14, (0, 2): 13, (1, 0): 11, (1, 1): 18, (1, 2): 15}


def two_by_three(iterations: int = 1) -> list[dict[str, Any]]:
    """fp x prf with these cell means, twice over os; fp=0 prf=2 is questionable."""
    return [
        {
            "os": os,
            "fp": fp,
            "prf": prf,
            "iteration": iteration,
            "questionable": "broken stacks" if (fp, prf) == (0, 2) else "",
            "value": mean,
        }
        for iteration in range(iterations)
        for os in (0, 1)
        for (fp, prf), mean in TWO_BY_THREE.items()
    ]


PLOTS = {
    (0, 1): (10, 12),
    (0, 2): (11, 14),
    (0, 3): (9, 10),
    (1, 1): (15, 20),
    (1, 2): (13, 17),
    (1, 3): (14, 20),
}


def split_plot() -> list[dict[str, Any]]:
    """Two levels of os, three boots of each, B inside."""
    return [
        {"boot": f"{os}.{boot}", "iteration": 0, "os": os, "B": b, "value": value}
        for (os, boot), pair in PLOTS.items()
        for b, value in enumerate(pair)
    ]


BOOTS = {
    ("0", "a"): (7.10, 7.12, 7.11, 7.15, 7.09),
    ("0", "b"): (7.11, 7.10, 7.13, 7.14, 7.12),
    ("1", "c"): (7.20, 7.22, 7.19, 7.25, 7.21),
    ("1", "d"): (7.30, 7.31, 7.29, 7.35, 7.33),
}


def boots() -> list[dict[str, Any]]:
    return [
        {"boot": boot, "iteration": number, "os": os, "value": value}
        for (os, boot), values in BOOTS.items()
        for number, value in enumerate(values)
    ]


def planted(
    iterations: int = 40,
    seed: int = 1,
    effects: Sequence[float] = (0.05, 0.0, 0.19),
    names: Sequence[str] = ("a", "b", "c"),
) -> list[dict[str, Any]]:
    """Two levels of each factor, long-tailed noise of scale 0.02, drift over the iterations; the first and the last
    factor interact by 0.04; a second response depends on nothing.
    """
    draw = np.random.default_rng(seed)
    cells = list(product((0, 1), repeat=len(names)))
    rows = []
    for iteration in range(iterations):
        for position, number in enumerate(draw.permutation(len(cells))):
            cell = cells[number]
            mean = 7.0 + sum(size * level for size, level in zip(effects, cell, strict=True)) + 0.0005 * iteration
            mean += 0.04 * cell[0] * cell[-1]
            noise = 0.02 * draw.standard_exponential() ** 1.5
            rows.append(
                {
                    **dict(zip(names, cell, strict=True)),
                    "iteration": iteration,
                    "position": position,
                    "wall": round(float(mean + noise), 6),
                    "other": round(float(1 + 0.1 * draw.standard_exponential()), 6),
                }
            )
    return rows


WALL = Chosen(values=("wall",))
BOTH = Chosen(values=("wall", "other"))
