"""Show the progress of a study: a bar while it runs, the last line, and the output of `cbench order status`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from importlib.util import find_spec

from rich.markup import escape

from cbench.console import TrialBar, shell_path, table_console, tell
from cbench.report.text import some
from cbench.study.records import StudyStatus
from cbench.study.runner import StudyProgress

MOST_REASONS = 5


@contextmanager
def study_progress() -> Iterator[Callable[[StudyProgress], None]]:
    """A progress bar with the finished trials, the current test and the remaining time. It is shown only on a terminal,
    and drawn between trials.
    """
    with TrialBar() as bar:

        def show(progress: StudyProgress) -> None:
            left = "" if progress.left_s is None else f", {span(progress.left_s)} to go"
            text = f"run {progress.run + 1} of {progress.runs}: {progress.test}{left}"
            bar.show(text, progress.done, progress.of)

        yield show


def warn_without_numpy() -> None:
    """If numpy is not installed, report on a terminal that analyzing the results will need it."""
    if sys.stderr.isatty() and find_spec("numpy") is None:
        tell("analyzing the results will need numpy: pip install 'quiet-cbench[order]'")


def print_status(status: StudyStatus, kind: str = "order") -> None:
    """Print the progress of a study, its failures, and the settings that it has left on this host."""
    console = table_console()
    done = f"{status.trials_done:,} of {status.trials:,} trials, {status.runs_over:,} of {status.runs:,} runs"
    console.print(escape(f"{status.name} ({status.data}): {done}"), soft_wrap=True)
    if wrong := _wrong(status):
        console.print(escape(wrong), soft_wrap=True)
    for each in status.failures[:MOST_REASONS]:
        console.print(escape(f"  {each.test}: {each.reason}"), soft_wrap=True)
    for run in status.left_out[-MOST_REASONS:]:
        console.print(escape(f"  run {run.run + 1}: {run.reason}"), soft_wrap=True)
    if status.set and not status.running:
        again = f"cbench {kind} resume {shell_path(status.data)}"
        line = f"still set on this host: {', '.join(status.set)}; `{again}` restores"
        console.print(escape(f"{line} these settings first"), soft_wrap=True)
    if status.finished:
        console.print("finished")
        return
    ago = "no trial has ended yet"
    if status.last_ended_s_ago is not None and status.left_s is not None:
        ago = f"{span(status.left_s)} to go; the last trial ended {span(status.last_ended_s_ago)} ago"
    console.print(f"running: {ago}" if status.running else f"not running: {ago}")
    if not status.running:
        console.print(escape(f"resume with: cbench {kind} resume {shell_path(status.data)}"), soft_wrap=True)


def finished(status: StudyStatus, kind: str = "order") -> str:
    """The line printed at the end of a study."""
    wrong = _wrong(status)
    return f"finished{f' ({wrong})' if wrong else ''}; next: cbench {kind} analyze {shell_path(status.data)}"


def _wrong(status: StudyStatus) -> str:
    parts = []
    if failed := status.trials_failed:
        tests = some(list(dict.fromkeys(each.test for each in status.failures)))
        parts.append(f"{failed:,} trial{'s' if failed > 1 else ''} of {tests} failed")
    if lost := status.runs_left_out:
        parts.append(f"{lost:,} run{'s were' if lost > 1 else ' was'} left out")
    if resumed := status.runs_resumed:
        parts.append(f"{resumed:,} run{'s' if resumed > 1 else ''} resumed after an interruption")
    return ", ".join(parts)


def span(seconds: float) -> str:
    """A duration as text, such as "0:01:30", or "9.5 s" if it is below ten seconds."""
    return f"{seconds:.1f} s" if seconds < 10 else str(timedelta(seconds=round(seconds)))
