"""What batches do to one response: hard factors against whole plots, and whether values depend on the boot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from cbench.screen.analysis.effects import ResponseSlice
from cbench.screen.analysis.result import PLOTS, AnovaLine, BootResult, SplitPlotResult, TestResult
from cbench.screen.data.data import Data
from cbench.screen.stats.batch_effects import BootCheck, boot_check
from cbench.screen.stats.splitplot import TOTAL, WHOLE_ERROR, WITHIN_ERROR, SplitPlot, split_plot


def whole_plots(found: ResponseSlice) -> SplitPlot | None:
    """None where no factor is hard and all values are of one batch."""
    series = found.series
    if not found.hard and np.unique(series.batch).size < 2:
        return None
    levels = np.array(found.data.treatments, dtype=np.intp)[series.treatment]
    return split_plot(found.names, levels, series.batch.astype(np.intp), series.value, found.hard)


def split_plot_result(found: SplitPlot | None) -> SplitPlotResult | None:
    if found is None:
        return None
    rows = tuple(
        AnovaLine(row.source, None if row.source == TOTAL else row.stratum, row.ss, row.df, row.ms, row.f, row.p)
        for row in found.rows
    )
    return SplitPlotResult(rows, found.refused, found.plots, found.dropped)


def plot_tests(
    plots: SplitPlot | None, ranks: Mapping[tuple[int, ...], TestResult], hard: Sequence[int]
) -> dict[tuple[int, ...], TestResult]:
    """Tests against the batches: of what hard factors have a part in, which the blocks cannot test, and of all that the
    blocks have tested, `ranks`: an effect that changes from batch to batch is told from that by the batches only."""
    tests = {}
    for row in plots.rows if plots else ():
        if row.p is not None and (row.factors in ranks or set(hard) & set(row.factors)):
            within = ranks.get(row.factors)
            estimate, p_within = (within.estimate, within.p) if within else (None, None)
            tests[row.factors] = TestResult(PLOTS, estimate, None, row.f, row.df, row.p, row.p, p_within)
    return tests


def untested(plots: SplitPlot | None) -> dict[tuple[int, ...], str]:
    """Effects that could be tested, were the error of their batches not 0."""
    if plots is None:
        return {}
    errors = {row.stratum: row for row in plots.rows if row.source in (WHOLE_ERROR, WITHIN_ERROR)}
    return {
        row.factors: f"the {errors[row.stratum].source} is 0: batches are exactly alike"
        for row in plots.rows
        if row.factors and row.df and row.p is None and errors[row.stratum].df
    }


def boots(found: ResponseSlice) -> tuple[BootResult, ...]:
    """Whether values, less their treatment's mean, depend on the batch; within each combination of hard levels."""
    series, data = found.series, found.data
    if len(data.batches) < 2:
        return ()
    whole = np.full(len(data.treatments), np.nan)
    whole[found.numbers] = found.means
    aligned = series.value - whole[series.treatment]
    level = series.value - aligned  # a treatment's mean
    kinds, code = _combinations(found)
    parts, of = [], []
    numbers = np.unique(series.batch)
    for batch in numbers:
        rows = series.batch == batch
        parts.append(aligned[rows] + (float(np.nanmean(level[rows])) if rows.any() else 0.0))
        of.append(int(code[series.treatment[rows][0]]))
    return tuple(_boot(found, each, kinds, numbers) for each in boot_check(parts, of, found.alpha))


def _boot(found: ResponseSlice, each: BootCheck, kinds: NDArray[np.intp], numbers: NDArray[np.int32]) -> BootResult:
    levels = zip(found.hard, kinds[each.level].tolist(), strict=True)
    names = [f"{found.names[factor]}={found.data.factors[factor].levels[level]}" for factor, level in levels]
    return BootResult(
        level=" ".join(names),
        batches=tuple(found.data.batches[int(numbers[boot])] for boot in each.boots),
        n=each.n,
        means=tuple(each.means.tolist()),
        h=each.h,
        p=each.p,
        f=each.f,
        p_f=each.p_f,
        ms_between=each.ms_between,
        ms_within=each.ms_within,
        var_boot=each.var_boot,
        icc=each.icc,
        p_holm=each.p_holm,
        depends=each.depends,
    )


def plots_of(data: Data) -> Mapping[tuple[int, ...], int]:
    """Batches of each combination of the hard factors' levels."""
    hard = [number for number, factor in enumerate(data.factors) if factor.hard]
    found: dict[tuple[int, ...], set[int]] = {}
    for series in data.series:
        pairs = np.unique(np.stack([series.batch, series.treatment], axis=1), axis=0)
        for batch, treatment in pairs.tolist():
            levels = tuple(data.treatments[treatment][number] for number in hard)
            found.setdefault(levels, set()).add(batch)
    return {levels: len(batches) for levels, batches in found.items()}


def _combinations(found: ResponseSlice) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The combinations of hard levels, and which one each treatment has; a single one where no factor is hard."""
    hard = np.array(found.data.treatments, dtype=np.intp)[:, found.hard]
    if not found.hard:
        return hard[:1], np.zeros(len(hard), dtype=np.intp)
    kinds, code = np.unique(hard, axis=0, return_inverse=True)
    return kinds, code.reshape(-1)
