"""What `cbench order analyze` and `report` do, between the command line and the tables."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cbench.order.options import OrderOptions
from cbench.report import figures
from cbench.report.page import NEEDED_BY_PAGES, check_page
from cbench.store.kind import is_store
from quiet import UsageError, save

if TYPE_CHECKING:
    from cbench.order.result import OrderResult
    from cbench.stats.trials import Trials

NEEDED = "cbench order needs numpy: pip install 'quiet-cbench[order]'"


def analyzed(options: OrderOptions) -> OrderResult:
    """The analysis of a file. Raises UsageError."""
    return _analyzed(options)[0]


def reported(options: OrderOptions, output: str) -> OrderResult:
    """The analysis of a file, and a page of it written. Raises UsageError before anything is computed."""
    check_page(options.data, output)
    figures.pyplot(NEEDED_BY_PAGES)
    result, trials = _analyzed(options)
    from cbench.order import page, page_study

    save(output, page.page(page_study.about(Path(options.data)), result, trials), "-o")
    return result


def _analyzed(options: OrderOptions) -> tuple[OrderResult, Trials]:
    shift = options.shift
    try:
        from cbench.order import read, summarize
        from cbench.order.stats.analysis import analyze
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError(NEEDED) from None
    path = Path(options.data)
    if is_store(path):
        from cbench.order import read_study

        said = read_study.said(path)
        rules, meaning = options.rules(said.alpha, said.failures), said.metrics
    else:
        rules, meaning = options.rules(), {}
    trials, warnings = read.read(path, options.values)
    return summarize.summarize(trials, analyze(trials, rules), warnings, shift, meaning), trials


def show(result: OrderResult, runs: bool = False) -> None:
    """On the terminal. `runs`: also how many runs it takes to see the shift."""
    from cbench.order import table

    table.analysis(result, runs)


def check_compared(data: str, result: OrderResult) -> None:
    """Raises UsageError where an analysis has no answer."""
    from cbench.order import verdict

    if verdict.nothing_compared(result.tests):
        raise UsageError(f"{data}: nothing to compare: no test has results in both orders")
