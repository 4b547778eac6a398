"""What `cbench screen validate` does, between the command line and the terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cbench.console import tell
from cbench.store.kind import is_store
from cbench.study import lifecycle
from cbench.study.runner import StudyProgress
from cbench.study.store import StudyStore
from cbench.validate import plan, series
from cbench.validate.plan import ValidateOptions
from quiet import UsageError

if TYPE_CHECKING:
    from cbench.validate.result import ValidationResult

NEEDED = "cbench screen needs numpy: pip install 'quiet-cbench[order]'"


def validated(options: ValidateOptions, show: Callable[[StudyProgress], None]) -> ValidationResult:
    """Run what is left of it, or all of it, and judge what is there. Raises UsageError, QuietError."""
    watch = _watch(options.watch)
    try:
        from cbench.validate.judge import judged
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise UsageError(NEEDED) from None
    data = Path(options.data)
    measured = False
    if data.exists():
        measured = _go_on(data, options, len(watch), show)
    elif not options.run:
        raise UsageError(f"{data}: no such file; without --no-run it is measured")
    else:
        _check_watch(len(watch), options.etalons)
        _begin(data, options, show)
        measured = True
    found = series.read(data)
    if not measured:
        _check_watch(len(watch), found.etalons)
    return judged(found, watch)


def _begin(data: Path, options: ValidateOptions, show: Callable[[StudyProgress], None]) -> None:
    """Write the study's file beside its store, and run it."""
    file = data.with_suffix(".toml")
    text = plan.text(options)
    if file == data or (file.exists() and file.read_text(errors="replace") != text):
        raise UsageError(f"{file}: is there already, and another study's; choose another name (-o)")
    try:
        file.write_text(text)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    tell(f"{file} written: what is measured; the store is {data}")
    lifecycle.StartStudy(str(file), str(data)).run(show, _again(data))


def _go_on(data: Path, options: ValidateOptions, readings: int, show: Callable[[StudyProgress], None]) -> bool:
    """Whether something was measured."""
    if not is_store(data):
        raise UsageError(f"{data}: is there already and is no store; choose another name (-o)")
    with StudyStore.open(data) as store:
        header, runs = store.header(), store.runs()
    try:
        plan.about(header.source)
    except UsageError as error:
        raise UsageError(f"{data}: {error}") from None
    if options.plans and plan.text(options) != header.source:
        raise UsageError(f"{data}: was begun with other options: leave them out to go on with it, or choose another -o")
    if not options.run or all(run.over for run in runs):
        return False
    _check_watch(readings, len(runs) * any(plan.is_etalon(test) for test in header.tests))
    lifecycle.ResumeStudy(str(data)).run(show, _again(data))
    return True


def _watch(text: str) -> Sequence[float]:
    try:
        found = [float(each) for each in text.split(",")] if text else []
    except ValueError:
        raise UsageError(f"--watch {text}: seconds, such as 10.07,9.99") from None
    if any(not 0 < each < float("inf") for each in found):
        raise UsageError(f"--watch {text}: seconds above 0")
    return found


def _again(data: Path) -> str:
    return f"cbench screen validate -o {data}"


def _check_watch(readings: int, trials: int) -> None:
    if readings > trials:
        said = "1 reading" if readings == 1 else f"{readings:,} readings"
        raise UsageError(f"--watch: {said} of {trials:,} trial{'' if trials == 1 else 's'} of the etalon")
