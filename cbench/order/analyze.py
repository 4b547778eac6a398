"""What `cbench order analyze` does, between the command line and the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cbench.report import figures
from cbench.store.kind import is_store
from quiet.console import check_savable, save
from quiet.errors import UsageError

if TYPE_CHECKING:
    from cbench.order.stats.data import Trials

NEEDED = "cbench order needs numpy: pip install 'quiet-cbench[order]'"
NEEDED_BY_PAGES = "pages need matplotlib: pip install 'quiet-cbench[order]'"
PAGE = b"<!doctype html"


@dataclass(frozen=True, slots=True)
class OrderAnalysisRequest:
    """The options of `cbench order analyze` as they were typed; None: the default."""

    data: str
    alpha: float | None = None
    correction: str | None = None
    intervals: str | None = None
    level: str | None = None
    case: str | None = None
    failures: str | None = None
    as_published: bool = False
    null: str | None = None
    every_rule: bool = False
    delta: float = 1.0
    values: Sequence[str] = ()


def analyzed(request: OrderAnalysisRequest) -> dict[str, Any]:
    """The analysis of a file. Raises UsageError."""
    return _analyzed(request)[0]


def reported(request: OrderAnalysisRequest, output: str) -> dict[str, Any]:
    """The analysis of a file, and a page of it written. Raises UsageError before anything is computed."""
    check_page(request.data, output)
    figures.pyplot(NEEDED_BY_PAGES)
    made, trials = _analyzed(request)
    from cbench.order import page, page_study

    save(output, page.page(page_study.about(Path(request.data)), made, trials), "-o")
    return made


def check_page(data: str, output: str) -> None:
    """Raises UsageError where a page cannot be written, or would take the place of something that is none."""
    check_savable(output, "-o")
    target = Path(output)
    if not target.is_file():
        return
    if Path(data).exists() and target.samefile(data):
        raise UsageError(f"-o {output}: is the data itself; choose another name for the page")
    with target.open("rb") as file:
        begin = file.read(len(PAGE))
    if begin and begin.lower() != PAGE:
        raise UsageError(f"-o {output}: is there already and is no page; choose another name, or remove it")


def _analyzed(request: OrderAnalysisRequest) -> tuple[dict[str, Any], Trials]:
    if not 0 < request.delta <= 1000:
        raise UsageError(f"--delta {request.delta:g}: a shift in %, above 0 and at most 1000")
    try:
        from cbench.order import options, read, result
        from cbench.order.stats.analysis import analyze
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError(NEEDED) from None
    path = Path(request.data)
    alpha: float | None = None
    failures: str | None = None
    meaning: dict[str, dict[str, str]] = {}
    if is_store(path):
        from cbench.order import read_study

        alpha, failures, meaning = read_study.said(path)
    asked = options.TypedOrderOptions(
        request.alpha if request.alpha is not None else alpha,
        request.correction,
        request.intervals,
        request.level,
        request.case,
        request.failures if request.failures is not None or request.as_published else failures,
        request.as_published,
        request.null,
    )
    chosen = options.options(asked)
    trials, warnings = read.read(path, request.values)
    made = result.shape(trials, analyze(trials, chosen), warnings, request.every_rule, request.delta)
    for name in made["tests"]:
        made["tests"][name] |= meaning.get(name, {})
    return made, trials


def show(made: Mapping[str, Any], runs: bool = False) -> None:
    from cbench.order import table

    table.analysis(made, runs)


def check_compared(data: str, made: Mapping[str, Any]) -> None:
    """Raises UsageError where an analysis has no answer."""
    from cbench.order import verdict

    if verdict.nothing_compared(made["tests"]):
        raise UsageError(f"{data}: nothing to compare: no test has results in both orders")
