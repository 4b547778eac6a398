"""The planted experiment: the tool finds the planted effects, and nothing else, in 20 repetitions on fresh noise.

Each repetition is tested with a family-wise chance of a false alarm of 0.25 % (Holm), so that 20 of them have any with
a chance below 5 %. With 60 blocks the effects, 0.6 to 0.8 standard deviations of the noise, are hardly ever missed:
docs/screening-effects.md has the counts.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cbench.screen.analysis.options import ScreenOptions
from cbench.screen.stats.block_tests import blocked
from cbench.screen.stats.blockplot import block_plot
from cbench.stats.multiple_testing import HOLM, adjusted
from tests.cbench.screen.planted import ALIGN, CACHE, FULL, INERT, LEVELS, STRICT, experiment, significant
from tests.cbench.screen.screens import analysed, cross, table
from tests.cbench.screen.stats.test_blockplot import EASY

BLOCKS = 60
REPETITIONS = 20
PLANTED = {(ALIGN,): FULL[0], (CACHE,): FULL[1], (ALIGN, CACHE): FULL[2]}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1000 + REPETITIONS))
def test_a_repetition_finds_the_planted_effects_and_nothing_else(seed: int, tmp_path: Path) -> None:
    """By the whole analysis of `cbench screen`, from a table of trials to the significant effects."""
    names = ("align", "cache", "inert")
    rows = [
        {**dict(zip(names, levels, strict=True)), "iteration": number, "value": value}
        for number, block in enumerate(experiment(seed, BLOCKS).tolist())
        for levels, value in zip(LEVELS.tolist(), block, strict=True)
    ]
    made, _ = analysed(table(tmp_path / "planted.csv", rows), ScreenOptions(alpha=STRICT, subsamples=0))
    (found,) = made["responses"].values()
    tested = [*found["effects"].items(), *((each["name"], each) for each in found["interactions"])]
    assert {name for name, each in tested if each["significant"]} == {"align", "cache", cross("align", "cache")}
    assert made["tests"] == len(tested) == 6


def test_the_sizes_are_found_within_their_standard_errors() -> None:
    """The intervals of two standard errors of 20 repetitions hold the planted size in about 95 % of 60 cases."""
    held = []
    for seed in range(2000, 2000 + REPETITIONS):
        tests = blocked(LEVELS, experiment(seed, BLOCKS)).effects
        for factors, size in PLANTED.items():
            each = tests[factors]
            assert each.se is not None
            held.append(abs((each.estimate or 0) - size) < 2 * each.se)
    assert len(held) == 60
    assert sum(held) >= 51  # of 57 expected; fewer with a chance of 0.001


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["normal", "long-tailed", "discrete", "unequal"])
def test_an_inert_factor_is_rarely_seen_whatever_the_noise_is(kind: str) -> None:
    """Any false alarm in 5 % of 100 experiments at most: 13 or more have a chance of 0.001."""
    alarms = 0
    for seed in range(100):
        found = significant(blocked(LEVELS, experiment(seed, 20, (2.0, 1.0, 1.0), kind)))
        alarms += any(INERT in factors for factors in found)
    assert alarms <= 12


def test_drift_that_all_treatments_share_is_not_an_effect() -> None:
    """A host that gets slower by a hundred deviations: blocks take it out of every effect."""
    values = experiment(5, BLOCKS) + np.linspace(0, 100, BLOCKS)[:, np.newaxis]
    assert significant(blocked(LEVELS, values), STRICT) == set(PLANTED)


def test_the_block_plot_of_the_means_agrees_and_the_crossing_shows() -> None:
    values = experiment(1000, 400, (0.8, 0.6, 0.2))
    plot = block_plot(EASY, LEVELS, values.mean(axis=0), ALIGN)
    assert plot is not None
    assert (plot.n, plot.consistent, plot.p) == (6, True, 0.03125)
    means = experiment(1000, 400).mean(axis=0)
    crossed = block_plot(EASY, LEVELS, means, CACHE)  # its effect is turned by the interaction
    assert crossed is not None
    assert not crossed.consistent


@pytest.mark.slow
def test_power_is_as_the_table_in_the_documentation_says() -> None:
    """Long-tailed noise, 0.4 standard deviations, 30 iterations: 85 % by signed ranks, 35 % by the means."""
    ranks, means = 0, 0
    for seed in range(5000, 5100):
        found = blocked(LEVELS, experiment(seed, 30, (0.4, 0.0, 0.0)))
        ranks += (0,) in significant(found)
        means += float(adjusted([each.p_plain for each in found.effects.values()], HOLM)[0]) < 0.05
    assert 73 <= ranks <= 95  # outside by chance once in a thousand
    assert 20 <= means <= 51
