"""Implement `cbench order analyze` and `cbench order report`: read the trials, analyze them, and write the report
page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from cbench.report import figures
from cbench.report.page import NEEDED_BY_PAGES, PAGE, check_page
from cbench.report.text import some
from cbench.store.kind import is_store
from quiet import UsageError, save

if TYPE_CHECKING:
    from cbench.machine.passport import UnlikeFact
    from cbench.order.result import OrderResult
    from cbench.order.stats.analysis import AnalysisRules
    from cbench.stats.trials import Trials
    from cbench.tables.parquet_set import ParquetSet

NEEDED = "cbench order needs numpy: pip install 'quiet-cbench[order]'"
NO_ORDERS = "run the commands with `cbench order run`, or give a CSV file with the columns test, order and value"


@dataclass(frozen=True, slots=True)
class OrderOptions:
    """The command-line options; None for an option that was not given. `values`: the columns of a table to read as
    values; `delta`: the shift in % for which the required number of runs is computed; `more`: further files, which are
    stores of the same study on other hosts or further Parquet files of the same table.
    """

    data: str
    alpha: float | None = None
    as_published: bool = False
    delta: float | None = None
    values: Sequence[str] = ()
    unpaired: bool = False
    more: Sequence[str] = ()

    def check(self) -> None:
        """Raises UsageError, with the valid values, for an invalid option."""
        if self.delta is not None and not 0 < self.delta <= 1000:
            raise UsageError(f"--delta {self.delta:g}: must be a shift in %, above 0 and at most 1000")
        if self.alpha is not None and not 1e-9 <= self.alpha < 1:
            raise UsageError(f"--alpha {self.alpha:g}: must be at least 1e-9 and below 1, such as 0.05")


def analyzed(options: OrderOptions) -> OrderResult:
    """The analysis of a file. Raises UsageError if the file or the options are unusable."""
    return _analyzed(options)[0]


def reported(options: OrderOptions, output: str) -> OrderResult:
    """Analyze a file and write its report page. Raises UsageError if the file is unusable, and, before anything is
    computed, if the page cannot be written or the options are invalid.
    """
    for each in (options.data, *options.more):
        check_page(each, output)
    figures.pyplot(NEEDED_BY_PAGES)
    result, trials = _analyzed(options)
    from cbench.order import page, page_study

    save(
        output,
        page.page(page_study.about_hosts([Path(each) for each in (options.data, *options.more)]), result, trials),
        "-o",
    )
    return result


def _analyzed(options: OrderOptions) -> tuple[OrderResult, Trials]:
    options.check()
    try:
        from cbench.order import summarize
        from cbench.order.stats.analysis import AnalysisRules, analyze
        from cbench.order.stats.hosts import aligned
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError(NEEDED) from None
    path = Path(options.data)
    rules, meaning, suite, left = AnalysisRules(), {}, None, 0
    if is_store(path):
        from cbench.order import read_study

        defaults = read_study.defaults(path)
        rules, meaning = AnalysisRules(defaults.alpha, defaults.failures), defaults.metrics
        suite = defaults.suite
        left = sum(read_study.runs_left(each) for each in map(Path, (options.data, *options.more)) if is_store(each))
    alpha = rules.alpha if options.alpha is None else options.alpha
    rules = AnalysisRules(alpha, rules.failures, options.as_published, options.unpaired)
    passports: tuple[UnlikeFact, ...] = ()
    paths = [path, *map(Path, options.more)]
    files = _parquet(paths)
    if files:
        from cbench.tables import mapped, parquet_set

        table = parquet_set.ParquetSet.open(files, options.values)
        if mapped.is_large(table, options.values):
            return _out_of_core(table, rules, 1.0 if options.delta is None else options.delta)
    if files[1:] or (files and files != paths):
        trials, warnings = _read_tables(table, options.values)
    elif options.more:
        trials, warnings, passports = _read_hosts(paths, options.values)
    else:
        trials, warnings = read(path, options.values)
    if rules.published and trials.host is not None:
        warnings.append(f"the trials of {len(trials.hosts):,} hosts are pooled, as in OrderSage: {some(trials.hosts)}")
    shift = 1.0 if options.delta is None else options.delta
    result = summarize.summarize(trials, analyze(trials, rules), warnings, shift, meaning, suite, passports)
    result = replace(result, design=replace(result.design, runs_left=left))
    return result, trials if rules.published else aligned(trials)


def _parquet(paths: Sequence[Path]) -> list[Path]:
    """The Parquet files of one table, from files and directories; [] if a path is neither a Parquet file nor a
    directory. Raises UsageError for a directory of another program's results that have no order.
    """
    from cbench.formats import registry
    from cbench.tables.parquet_set import parquet_files

    for path in paths:
        if path.is_dir():
            registry.refuse_without(path, "orders", NO_ORDERS)
    return parquet_files(paths)


def _read_tables(table: ParquetSet, metrics: Sequence[str]) -> tuple[Trials, list[str]]:
    from cbench.tables.parquet_set import read_set

    trials, warnings = read_set(table, metrics)
    if not trials.series.size:
        others = "; neither do the other files" if table.files[1:] else ""
        raise UsageError(f"{table.files[0]}: contains no trials{others}")
    return trials, warnings


def _out_of_core(table: ParquetSet, rules: AnalysisRules, shift: float) -> tuple[OrderResult, Trials]:
    """Analyze a table that does not fit in memory, with a progress bar."""
    from cbench.console import TrialBar
    from cbench.order import summarize
    from cbench.order.stats.analysis import analyze
    from cbench.tables.mapped import map_trials

    with TrialBar() as bar:
        data = map_trials(table, bar.show)
        analysis = analyze(data.trials, rules, data.keep, bar.show)
    return summarize.summarize(data.trials, analysis, data.warnings, shift), data.trials


def _read_hosts(paths: Sequence[Path], metrics: Sequence[str]) -> tuple[Trials, list[str], tuple[UnlikeFact, ...]]:
    """Read several stores. Raises UsageError unless all are stores of one study."""
    from cbench.order import read_study

    for path in paths:
        if not path.exists():
            raise UsageError(f"{path}: no such file")
        if not is_store(path):
            raise UsageError(
                f"{path}: not a store; several files must be the stores of one study on its hosts, or all be Parquet "
                "files"
            )
    if metrics:
        raise UsageError(
            f"--value {metrics[0]}: selects a table's column, but {paths[0]} is a study's store; omit --value"
        )
    trials, warnings, passports = read_study.read_hosts(paths)
    if not trials.series.size:
        raise UsageError(
            f"{paths[0]}: contains no trials, and neither do the other stores; run `cbench order resume` for each first"
        )
    return trials, warnings, passports


def _refuse_other_files(path: Path) -> None:
    """Raises UsageError, with the next command, for a study's file, a page, or the JSON of an analysis."""
    if not path.is_file() or is_store(path):
        return
    try:
        with path.open("rb") as file:
            begin = file.read(1 << 16)
    except OSError:  # reported by the reader
        return
    if begin[: len(PAGE)].lower() == PAGE:
        raise UsageError(f"{path}: is a page; analyze the data from which it was written")
    if re.search(rb"^\s*\[(study|suite|\[test\])\]", begin, re.MULTILINE):
        raise UsageError(
            f"{path}: is a study's file; run it with `cbench order run {path}`, and analyze the store that this writes"
        )
    if begin.lstrip()[:1] == b"{" and b'"order_matters"' in begin:
        raise UsageError(f"{path}: is the JSON of an analysis; analyze the data from which it was written")


def read(path: Path, metrics: Sequence[str] = ()) -> tuple[Trials, list[str]]:
    """Read the trials from a study's store, OrderSage's results, or a CSV or Parquet file. Returns them with warnings.

    `metrics`: names of a table's columns to read instead of `value`. Raises UsageError for an unusable file.
    """
    from cbench.formats import ordersage, registry
    from cbench.order import read_ordersage
    from cbench.tables import read as read_table

    if not path.exists():
        raise UsageError(f"{path}: no such file")
    _refuse_other_files(path)
    registry.refuse_without(path, "orders", NO_ORDERS)
    if path.is_dir():
        raise UsageError(f"{path}: is a directory without Parquet files; name a file")
    kind = "a study's store" if is_store(path) else ""
    names: Sequence[str] = ()
    if not kind and path.suffix.lower() not in read_table.PARQUET:
        names = read_table.header(path)
        if ordersage.is_ordersage(names):
            kind = "a file of OrderSage's results"
        elif lacking := ordersage.lacking(names):
            raise UsageError(f"{path}: looks like OrderSage's results, but has no column {lacking}")
    if kind and metrics:
        raise UsageError(f"--value {metrics[0]}: selects a table's column, but {path} is {kind}; omit --value")
    if is_store(path):
        from cbench.order import read_study

        trials, warnings = read_study.read(path)
    else:
        trials, warnings = read_ordersage.read(path, names) if kind else read_table.read(path, metrics)
    if not trials.series.size:
        raise UsageError(f"{path}: contains no trials")
    return trials, warnings
