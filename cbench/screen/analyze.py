"""What `cbench screen analyze` and `report` do, between the command line and the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbench.report import figures
from cbench.report.page import NEEDED_BY_PAGES, check_page
from quiet.console import save
from quiet.errors import UsageError

if TYPE_CHECKING:
    from cbench.screen.analysis.analysis import ScreenOptions
    from cbench.screen.data.data import Data

NEEDED = "cbench screen analyze needs numpy: pip install 'quiet-cbench[order]'"
Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ScreenAnalysisRequest:
    """The options of `cbench screen analyze` as they were typed; None: the experiment's own, or the default."""

    data: str
    alpha: float | None = None
    confidence: float | None = None
    seed: int | None = None
    abridgment: str | None = None
    only: Sequence[str] = ()
    minus: Sequence[str] = ()
    exclude: bool = False
    digits: int | None = None
    subsamples: int | None = None
    factors: Sequence[str] = ()
    values: Sequence[str] = ()
    hard: Sequence[str] = ()


def analyzed(request: ScreenAnalysisRequest, progress: Progress = lambda words: None) -> dict[str, Any]:
    """The analysis of a file. Raises UsageError."""
    return _analyzed(request, progress)[0]


def reported(request: ScreenAnalysisRequest, output: str, progress: Progress = lambda words: None) -> dict[str, Any]:
    """The analysis of a file, and a page of it written. Raises UsageError before anything is computed."""
    check_page(request.data, output)
    figures.pyplot(NEEDED_BY_PAGES)
    made, data = _analyzed(request, progress)
    from cbench.screen.report import page

    progress("the page")
    save(output, page.page(made, data), "-o")
    return made


def show(made: Mapping[str, Any]) -> None:
    """On the terminal."""
    from cbench.screen import table

    table.analysis(made)


def check_tested(data: str, made: Mapping[str, Any]) -> None:
    """Raises UsageError where an analysis has no answer."""
    from cbench.screen.analysis import verdict

    if verdict.nothing_told(made):
        raise UsageError(f"{data}: {made['verdict'][0]}")


def _analyzed(request: ScreenAnalysisRequest, progress: Progress) -> tuple[dict[str, Any], Data]:
    try:
        from cbench.screen.analysis.analysis import analyse
        from cbench.screen.data import read
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError(NEEDED) from None
    options = _options(request)
    data = read.read(Path(request.data), read.Chosen(request.factors, request.values, request.hard))
    return analyse(data, options, progress), data


def _options(request: ScreenAnalysisRequest) -> ScreenOptions:
    """Raises UsageError, which says what may be written."""
    from cbench.screen.analysis.analysis import ScreenOptions
    from cbench.screen.analysis.samples import Studying

    if request.alpha is not None and not 0 < request.alpha < 1:
        raise UsageError(f"--alpha {request.alpha:g}: between 0 and 1, such as 0.05")
    confidence = request.confidence
    if confidence is not None:
        confidence = confidence / 100 if confidence >= 1 else confidence
        if not 0.5 <= confidence <= 0.9999:
            raise UsageError(f"--ci-level {request.confidence:g}: a level such as 95, from 50 to 99.99")
    if request.digits is not None and request.digits not in (1, 2):
        raise UsageError(f"--digits {request.digits}: 1 or 2 significant digits of the standard uncertainty")
    if request.subsamples is not None and not 0 <= request.subsamples <= 1_000_000:
        raise UsageError(f"--subsamples {request.subsamples}: from 0 (no study) to 1,000,000")
    if request.seed is not None and not 0 <= request.seed < 2**63:
        raise UsageError(f"--seed {request.seed}: from 0 to 2^63 - 1")
    studying = Studying() if request.subsamples is None else Studying(subsamples=request.subsamples)
    return ScreenOptions(
        request.alpha,
        confidence,
        request.seed,
        request.abridgment,
        request.only,
        request.minus,
        request.exclude,
        request.digits,
        studying,
    )
