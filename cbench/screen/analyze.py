"""What `cbench screen analyze` and `report` do, between the command line and the tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cbench.report import figures
from cbench.report.page import NEEDED_BY_PAGES, check_page
from quiet import UsageError, save

if TYPE_CHECKING:
    from cbench.screen.analysis.options import ScreenOptions
    from cbench.screen.analysis.result import ScreenResult
    from cbench.screen.data.data import Data

NEEDED = "cbench screen analyze needs numpy: pip install 'quiet-cbench[order]'"
Progress = Callable[[str], None]


def analyzed(path: str, options: ScreenOptions, progress: Progress = lambda words: None) -> ScreenResult:
    """The analysis of a file. Raises UsageError."""
    return _analyzed(path, options, progress)[0]


def reported(path: str, options: ScreenOptions, output: str, progress: Progress = lambda words: None) -> ScreenResult:
    """The analysis of a file, and a page of it written. Raises UsageError before anything is computed."""
    check_page(path, output)
    figures.pyplot(NEEDED_BY_PAGES)
    result, data = _analyzed(path, options, progress)
    from cbench.screen.report import page

    progress("the page")
    save(output, page.page(result, data), "-o")
    return result


def check_tested(path: str, result: ScreenResult) -> None:
    """Raises UsageError where an analysis has no answer."""
    from cbench.screen.analysis import verdict

    if verdict.nothing_told(result):
        raise UsageError(f"{path}: {result.verdict[0]}")


def _analyzed(path: str, options: ScreenOptions, progress: Progress) -> tuple[ScreenResult, Data]:
    try:
        from cbench.screen.analysis.analysis import analyse
        from cbench.screen.data import read
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError(NEEDED) from None
    data = read.read(Path(path), read.Chosen(options.factors, options.values, options.hard))
    return analyse(data, options, progress), data
