"""How far a study is: a bar while it runs, and some lines for `cbench order status`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape

from cbench.console import TrialBar
from cbench.study.runner import StudyProgress

MOST_REASONS = 5


class StudyBar:
    """The trials done, the test that runs, and the time to go; on a terminal only, drawn between trials."""

    def __init__(self) -> None:
        self._bar = TrialBar()

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.__exit__(kind, error, trace)

    def show(self, progress: StudyProgress) -> None:
        left = "" if progress.left_s is None else f", {span(progress.left_s)} to go"
        text = f"run {progress.run + 1} of {progress.runs}: {progress.test}{left}"
        self._bar.show(text, progress.done, progress.of)


def status(made: Mapping[str, Any], kind: str = "order") -> None:
    """Some lines."""
    console = Console(highlight=False)
    done = f"{made['trials_done']:,} of {made['trials']:,} trials, {made['runs_over']:,} of {made['runs']:,} runs"
    console.print(escape(f"{made['name']} ({made['data']}): {done}"), soft_wrap=True)
    if wrong := _wrong(made):
        console.print(escape(wrong), soft_wrap=True)
    for each in made["failures"][:MOST_REASONS]:
        console.print(escape(f"  {each['test']}: {each['reason']}"), soft_wrap=True)
    for each in made["left_out"][-MOST_REASONS:]:
        console.print(escape(f"  run {each['run'] + 1}: {each['reason']}"), soft_wrap=True)
    if made.get("set") and not made["running"]:
        said = f"still set on this host: {', '.join(made['set'])}; `cbench {kind} resume {made['data']}` puts it back"
        console.print(escape(f"{said} first"), soft_wrap=True)
    if made["finished"]:
        console.print("finished")
        return
    ago = "no trial has ended yet"
    if made["last_ended_s_ago"] is not None:
        ago = f"{span(made['left_s'])} to go; the last trial ended {span(made['last_ended_s_ago'])} ago"
    console.print(f"running: {ago}" if made["running"] else f"not running: {ago}")
    if not made["running"]:
        console.print(escape(f"go on with: cbench {kind} resume {made['data']}"), soft_wrap=True)


def planned(made: Mapping[str, Any]) -> None:
    """A screening experiment before it runs."""
    from cbench.screen.config.plan import lines

    console = Console(highlight=False)
    for line in lines(made):
        console.print(escape(line), soft_wrap=True)


def finished(made: Mapping[str, Any], kind: str = "order") -> str:
    """A line for the end of a study."""
    wrong = _wrong(made)
    return f"finished{f' ({wrong})' if wrong else ''}; now: cbench {kind} analyze {made['data']}"


def _wrong(made: Mapping[str, Any]) -> str:
    said = []
    if failed := made["trials_failed"]:
        said.append(f"{failed:,} trial{'s' if failed > 1 else ''} failed")
    if lost := made["runs_left_out"]:
        said.append(f"{lost:,} run{'s were' if lost > 1 else ' was'} left out")
    if resumed := made["runs_resumed"]:
        said.append(f"{resumed:,} run{'s' if resumed > 1 else ''} went on after an interruption")
    return ", ".join(said)


def span(seconds: float) -> str:
    """As h:mm:ss, below ten seconds with a digit more."""
    return f"{seconds:.1f} s" if seconds < 10 else str(timedelta(seconds=round(seconds)))
