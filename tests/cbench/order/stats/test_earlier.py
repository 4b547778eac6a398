"""Which test changes another one by running anywhere before it."""

from __future__ import annotations

import numpy as np
import pytest

from cbench.order.stats import earlier
from cbench.stats.trials import Trials
from cbench.tables.columns import trials

NAMES = ("a", "b", "c", "d")


def study(runs: int, seed: int, effect: float = 0.0, by_position: float = 0.0, order: str = "random") -> Trials:
    """`effect`: of `a` on `c`, anywhere before it; `by_position`: of each place on all tests."""
    draw = np.random.default_rng(seed)
    columns: dict[str, list[object]] = {key: [] for key in ("test", "order", "run", "position", "value")}
    for run in range(runs):
        ran = draw.permutation(NAMES).tolist()
        for position, test in enumerate(ran):
            value = 100 + draw.normal() + by_position * position
            value += effect if test == "c" and "a" in ran[:position] else 0
            for key, item in zip(columns, (test, order, run, position, value), strict=True):
                columns[key].append(item)
    return trials(columns)[0]


def test_the_test_that_changes_another_is_found_though_others_run_between() -> None:
    made = study(20, 1, effect=8)
    found = earlier.earlier(made)
    strongest = min(found.found, key=lambda each: each.effect.p)
    assert (made.names[strongest.series], made.test_names[strongest.before]) == ("c", "a")
    assert found.pairs == 12
    assert strongest.effect.p * found.pairs < 0.01
    value = made.value[(made.series == strongest.series)]
    assert strongest.effect.median == pytest.approx(np.median(value[value > 104]))
    assert strongest.effect.median_others == pytest.approx(np.median(value[value < 104]))


def test_no_test_is_blamed_for_a_trend_over_the_positions() -> None:
    """With a trend alone any test that runs before seems to do it; a lucky one may explain as much as the trend."""
    named = [
        each.effect.p * found.pairs < 0.05
        for seed in range(20)
        for found in [earlier.earlier(study(20, seed, by_position=3))]
        for each in found.found
    ]
    assert sum(named) <= 4


def test_without_an_effect_false_alarms_are_as_rare_as_alpha_says() -> None:
    alarms = 0
    for seed in range(200):
        found = earlier.earlier(study(12, seed))
        alarms += any(each.effect.p * found.pairs < 0.05 for each in found.found)
    assert alarms <= 20  # of 200 with a chance of 5 %: more has a chance of 0.1 %


def test_fixed_runs_and_failed_trials_are_not_used() -> None:
    assert earlier.earlier(study(20, 1, effect=8, order="fixed")).found == ()
    made = study(20, 1, effect=8)
    assert earlier.earlier(made, np.ones(made.value.size, dtype=bool)).found == ()
