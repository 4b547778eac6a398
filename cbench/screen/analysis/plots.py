"""What batches do to one response: effects against whole plots, and whether values depend on the boot."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cbench.screen.analysis.effects import ResponseSlice
from cbench.screen.data.data import Data
from cbench.screen.design.factorial import named
from cbench.screen.stats.batch_effects import BootCheck, boot_check
from cbench.screen.stats.block_tests import Effect, EffectTest
from cbench.screen.stats.effects import Values
from cbench.screen.stats.splitplot import AnovaRow, SplitPlot, split_plot

PLOTS = "split-plot analysis of variance"


def whole_plots(part: ResponseSlice) -> tuple[SplitPlot | None, dict[Effect, AnovaRow]]:
    """The table and its effects' rows; none where no factor is hard and all values are of one batch."""
    series = part.series
    if not part.hard and np.unique(series.batch).size < 2:
        return None, {}
    levels = np.array(part.data.treatments, dtype=np.intp)[series.treatment]
    return split_plot(part.names, levels, series.batch.astype(np.intp), series.value, part.hard)


def plot_tests(
    rows: Mapping[Effect, AnovaRow], ranks: Mapping[Effect, EffectTest], part: ResponseSlice
) -> dict[Effect, EffectTest]:
    """Tests against the batches: of what hard factors have a part in, which the blocks cannot test, and of all that the
    blocks have tested, `ranks`: an effect that changes from batch to batch is told from that by the batches only."""
    tests = {}
    for effect, row in rows.items():
        if row.p is not None and (effect in ranks or set(part.hard) & set(effect)):
            within = ranks.get(effect)
            estimate, p_within = (within.estimate, within.p) if within else (None, None)
            tests[effect] = EffectTest(PLOTS, estimate, None, row.f, row.df, row.p, row.p, p_within)
    return tests


def untested(split: SplitPlot | None, rows: Mapping[Effect, AnovaRow]) -> dict[Effect, str]:
    """Effects that could be tested, were the error of their batches not 0."""
    errors = split.errors if split else {}
    return {
        effect: f"the {errors[row.stratum].source} is 0: batches are exactly alike"
        for effect, row in rows.items()
        if row.stratum and row.df and row.p is None and errors[row.stratum].df
    }


def boots(part: ResponseSlice) -> tuple[BootCheck, ...]:
    """Whether values, less their treatment's mean, depend on the batch; within each combination of hard levels."""
    series, data = part.series, part.data
    if len(data.batches) < 2:
        return ()
    means = np.full(len(data.treatments), np.nan)
    means[part.numbers] = part.means
    aligned = series.value - means[series.treatment]
    level = series.value - aligned  # a treatment's mean
    samples: dict[tuple[int, ...], dict[str, Values]] = {}
    for batch in np.unique(series.batch).tolist():
        rows = series.batch == batch
        treatment = data.treatments[series.treatment[rows][0]]
        values = aligned[rows] + float(np.nanmean(level[rows]))
        samples.setdefault(tuple(treatment[factor] for factor in part.hard), {})[data.batches[batch]] = values
    hard = [data.factors[factor] for factor in part.hard]
    return boot_check({named(hard, levels): samples[levels] for levels in sorted(samples)}, part.alpha)


def plots_of(data: Data) -> Mapping[tuple[int, ...], int]:
    """Batches of each combination of the hard factors' levels."""
    hard = [number for number, factor in enumerate(data.factors) if factor.hard]
    numbers: dict[tuple[int, ...], set[int]] = {}
    for series in data.series:
        pairs = np.unique(np.stack([series.batch, series.treatment], axis=1), axis=0)
        for batch, treatment in pairs.tolist():
            levels = tuple(data.treatments[treatment][number] for number in hard)
            numbers.setdefault(levels, set()).add(batch)
    return {levels: len(batches) for levels, batches in numbers.items()}
