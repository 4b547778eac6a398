"""Values near the ends of 64-bit numbers: nothing vanishes silently, nothing ends in a traceback."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cbench.screen.stats.batch_effects import boot_check
from cbench.screen.stats.block_tests import blocked
from cbench.screen.stats.splitplot import split_plot
from cbench.stats.batched_intervals import t_ends
from cbench.stats.etalon import first_run
from cbench.stats.interval import t_interval
from quiet.errors import UsageError
from tests.cbench.screen import screens
from tests.cbench.screen.planted import LEVELS, experiment
from tests.cbench.screen.screens import BOTH, QUICK, analysed, table
from tests.cbench.screen.stats.test_splitplot import LEVELS as PLOT_LEVELS
from tests.cbench.screen.stats.test_splitplot import PLOTS, VALUES

SMALL = 2.0**-664  # 1.3e-200, without rounding


def planted(scale: float) -> list[dict[str, Any]]:
    return [{**row, "wall": row["wall"] * scale, "other": ""} for row in screens.planted(6)]


def test_tiny_values_have_the_same_t_interval_as_large_ones() -> None:
    values = experiment(1, 9)[:, 0]
    one, small = t_interval(values), t_interval(values * SMALL)
    assert (small.low, small.high) == ((one.low or 0) * SMALL, (one.high or 0) * SMALL)
    ends = t_ends(values[np.newaxis], 0.95)
    assert [float(end[0]) * SMALL for end in ends] == [
        float(end[0]) for end in t_ends(values[np.newaxis] * SMALL, 0.95)
    ]


def test_tiny_values_have_the_same_tests_as_large_ones() -> None:
    values = experiment(1, 20)
    tiny_tests = blocked(LEVELS, values * SMALL).effects
    for effect, one in blocked(LEVELS, values).effects.items():
        small = tiny_tests[effect]
        assert (small.p, small.p_plain) == (one.p, one.p_plain)
        assert small.se == (None if one.se is None else one.se * SMALL)
    first, tiny = first_run(values[:, 0]), first_run(values[:, 0] * SMALL)
    assert (first.ratio, first.p) == (tiny.ratio, tiny.p)


@pytest.mark.parametrize("scale", [SMALL, 1 / SMALL])
def test_batches_of_tiny_and_of_huge_values_have_the_same_p(scale: float) -> None:
    names = ("os", "B")
    (one, *_), (far, *_) = (split_plot(names, PLOT_LEVELS, PLOTS, VALUES * by, hard=[0]) for by in (1, scale))
    assert [(row.f, row.p) for row in far.rows] == [(row.f, row.p) for row in one.rows]
    (near,), (away,) = (boot_check({"": {"a": VALUES[:3] * by, "b": VALUES[3:6] * by}}) for by in (1, scale))
    assert (away.f, away.icc, away.means) == (near.f, near.icc, tuple(mean * scale for mean in near.means))


def test_tiny_values_have_a_deviation_in_the_table(tmp_path: Path) -> None:
    made, _ = analysed(table(tmp_path / "t.csv", planted(1e-200)), chosen=BOTH, options=QUICK)
    for row in made["responses"]["wall"]["treatments"]:
        assert row["sd"] > 1e-204
        assert row["t"][0] < row["mean"] < row["t"][1]


def test_values_too_large_to_be_squared_are_refused_with_their_line(tmp_path: Path) -> None:
    path = table(tmp_path / "t.csv", planted(1e200))
    with pytest.raises(UsageError, match=r"line 2: column wall: is beyond ±1e\+150, too large to be squared"):
        analysed(path, chosen=BOTH, options=QUICK)
