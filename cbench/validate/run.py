"""Implement `cbench screen validate`: run the trials and judge them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from cbench.console import shell_path, tell
from cbench.store.kind import is_store
from cbench.study import lifecycle
from cbench.study.runner import StudyProgress
from cbench.study.store import StudyStore
from cbench.validate import plan, series
from cbench.validate.plan import ValidateOptions
from quiet import UsageError

if TYPE_CHECKING:
    from cbench.validate.result import ValidationResult

NEEDED = "cbench screen validate needs numpy: pip install 'quiet-cbench[order]'"


def validated(options: ValidateOptions, show: Callable[[StudyProgress], None]) -> ValidationResult:
    """Run the remaining trials of the validation and judge the stored trials. Raises UsageError for wrong options,
    QuietError if trials cannot be run or read.
    """
    try:
        from cbench.validate.judge import judged
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError(NEEDED) from None
    data = Path(options.data)
    if data.exists():
        _go_on(data, options, show)
    elif not options.run:
        raise UsageError(f"{data}: no such file; omit --no-run to measure")
    else:
        _begin(data, options, show)
    return judged(series.read(data))


def _begin(data: Path, options: ValidateOptions, show: Callable[[StudyProgress], None]) -> None:
    """Write the study's file next to its store, and run the study."""
    file = data.with_suffix(".toml")
    text = plan.text(options)
    if file == data:
        raise UsageError(f"{data}: this is the name of the study file; choose another name for the store (-o)")
    if file.exists() and file.read_text(errors="replace") != text:
        raise UsageError(f"{file}: already exists and belongs to another study; choose another name (-o)")
    try:
        file.write_text(text)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    tell(plan.duration(text))
    tell(f"wrote {file}, which lists the measurements; the store is {data}")
    lifecycle.StartStudy(str(file), str(data)).run(show, _again(data))


def _go_on(data: Path, options: ValidateOptions, show: Callable[[StudyProgress], None]) -> None:
    """Run the remaining trials."""
    if not is_store(data):
        raise UsageError(f"{data}: already exists and is not a store; choose another name (-o)")
    with StudyStore.open(data) as store:
        header, runs = store.header(), store.runs()
    try:
        plan.about(header.source)
    except UsageError as error:
        raise UsageError(f"{data}: {error}") from None
    if options.plans and plan.text(options) != header.source:
        raise UsageError(
            f"{data}: was started with other options: omit the options to resume it, or choose another file (-o)"
        )
    if options.run and not all(run.over for run in runs):
        lifecycle.ResumeStudy(str(data)).run(show, _again(data))


def _again(data: Path) -> str:
    return f"cbench screen validate -o {shell_path(data)}"
