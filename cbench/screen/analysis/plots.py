"""Analyze the batches of one response: test effects against whole plots, and test values for effects of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cbench.screen.analysis.effects import ResponseSlice
from cbench.screen.data.data import Data
from cbench.screen.design.factorial import named
from cbench.screen.stats.anova import tested
from cbench.screen.stats.anova_table import AnovaRow, EffectEstimate
from cbench.screen.stats.batch_effects import BootCheck, boot_check
from cbench.screen.stats.block_tests import Effect, EffectTest
from cbench.screen.stats.effects import Values
from cbench.screen.stats.splitplot import SplitPlot, split_plot

PLOTS = "split-plot analysis of variance"


def whole_plots(
    part: ResponseSlice,
) -> tuple[SplitPlot | None, dict[Effect, AnovaRow], dict[Effect, EffectEstimate]]:
    """The split-plot table, the rows of its effects, and their sizes; None and empty mappings if no factor is hard to
    change and all values come from one batch.
    """
    series = part.series
    if not part.hard and np.unique(series.batch).size < 2:
        return None, {}, {}
    levels = np.array(part.data.treatments, dtype=np.intp)[series.treatment]
    replicates = np.array(part.data.plot_blocks, dtype=np.intp) if part.data.plot_blocks else None
    return split_plot(part.names, levels, series.batch.astype(np.intp), series.value, part.hard, replicates)


def plot_tests(
    split: SplitPlot | None,
    rows: Mapping[Effect, AnovaRow],
    estimates: Mapping[Effect, EffectEstimate],
    ranks: Mapping[Effect, EffectTest],
    part: ResponseSlice,
) -> dict[Effect, EffectTest]:
    """Test effects against the differences between batches.

    Hard factors cannot be tested within iterations. All other factors are included because only a comparison of batches
    shows whether an effect varies between them. `ranks`: tests within iterations.
    """
    tests = {}
    for effect, row in rows.items():
        if split is not None and row.p is not None and row.stratum:
            within = ranks.get(effect)
            test = tested(PLOTS, row, estimates.get(effect), split.errors[row.stratum].df)
            tests[effect] = replace(test, p_within=within.p if within else None)
    return tests


def untested(split: SplitPlot | None, rows: Mapping[Effect, AnovaRow]) -> dict[Effect, str]:
    """The effects that cannot be tested because the error of their batches is 0, with the reason as text."""
    errors = split.errors if split else {}
    return {
        effect: f"the {errors[row.stratum].source} is 0: batches are identical"
        for effect, row in rows.items()
        if row.stratum and row.df and row.p is None and errors[row.stratum].df
    }


def boots(part: ResponseSlice) -> tuple[BootCheck, ...]:
    """Test whether values, minus their treatment's mean, depend on the batch, within each combination of hard levels.
    Returns () for a single batch, and for a design with blocks of whole plots.
    """
    series, data = part.series, part.data
    if len(data.batches) < 2 or data.plot_blocks:  # by design, blocks of whole plots differ
        return ()
    means = np.full(len(data.treatments), np.nan)
    means[part.numbers] = part.means
    aligned = series.value - means[series.treatment]
    level = series.value - aligned  # the mean of the value's treatment
    samples: dict[tuple[int, ...], dict[str, Values]] = {}
    for batch in np.unique(series.batch).tolist():
        rows = series.batch == batch
        if np.isnan(level[rows]).all():  # every trial of the batch failed
            continue
        treatment = data.treatments[series.treatment[rows][0]]
        values = aligned[rows] + float(np.nanmean(level[rows]))
        samples.setdefault(tuple(treatment[factor] for factor in part.hard), {})[data.batches[batch]] = values
    hard = [data.factors[factor] for factor in part.hard]
    return boot_check({named(hard, levels): samples[levels] for levels in sorted(samples)}, part.alpha)


def plots_of(data: Data) -> Mapping[tuple[int, ...], int]:
    """The number of batches of each combination of the hard factors' levels."""
    hard = [number for number, factor in enumerate(data.factors) if factor.hard]
    numbers: dict[tuple[int, ...], set[int]] = {}
    for series in data.series:
        pairs = np.unique(np.stack([series.batch, series.treatment], axis=1), axis=0)
        for batch, treatment in pairs.tolist():
            levels = tuple(data.treatments[treatment][number] for number in hard)
            numbers.setdefault(levels, set()).add(batch)
    return {levels: len(batches) for levels, batches in numbers.items()}
