"""Print the commands' results, messages and progress, and end commands on Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

from quiet import QuietError, printable, say

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

T = TypeVar("T")


class StoppedError(QuietError):
    """The command was stopped by Ctrl-C; the exit code is 130, as in shells."""

    exit_code = 128 + signal.SIGINT


@contextlib.contextmanager
def interruptible(kept: bool = False) -> Iterator[None]:
    """A context in which Ctrl-C ends the command with a one-line message; `kept`: the trials so far are in a file."""
    try:
        yield
    except KeyboardInterrupt:
        raise StoppedError("interrupted" if kept else "interrupted, nothing was kept") from None


def tell(line: str) -> None:
    """Print a message for the user to stderr, as one line."""
    say(f"cbench: {line}")


def shell_path(path: str | os.PathLike[str]) -> str:
    """The path as one word of a shell command, also if it begins with "-"."""
    text = os.fspath(path)
    return shlex.quote(f"./{text}" if text.startswith("-") else text)


def show(result: T, as_json: bool, table: Callable[[T], None]) -> None:
    """Print the result on stdout as one JSON object or as a table. If the reader closes stdout, the command ends
    silently.
    """
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        if as_json:
            write_json(result)
        else:
            table(result)
        sys.stdout.flush()
    except OSError as error:
        error.filename = error.filename or "stdout"
        raise


def tell_or_json(result: object, as_json: bool, line: str) -> None:
    """Print the result as one JSON object on stdout, or the line as a message."""
    if as_json:
        write_json(result)
    else:
        tell(line)


def decimals(value: float, width: float) -> int:
    """The number of decimal places for a value whose interval has this width. It is the smallest number, up to 4, for
    which a unit of the last place is at most half the width; 0 for a whole number without a width, and for values from
    a million on.
    """
    if float(value).is_integer() and width == 0:
        return 0
    return next((digits for digits in range(4) if width * 10**digits >= 2), 4) if value < 1e6 else 0


def write_json(result: object) -> None:
    """Print a result as one JSON object on stdout."""
    from cbench.results import json_text

    sys.stdout.write(json_text(result) + "\n")


def table_console(width: int = 0) -> Console:
    """A console for tables: at least `width` columns wide if it is not a terminal.

    Control characters are escaped in every text: names and units come from untrusted files.
    """
    from rich.console import Console

    class PrintableConsole(Console):
        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(printable(text), **options)

    console = PrintableConsole(highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, width)
    return console


class TrialBar:
    """A progress bar, shown only on a terminal. It is drawn on request, so no thread disturbs the trials."""

    def __init__(self) -> None:
        self._progress: Progress | None = None
        if sys.stderr.isatty():  # rich 14.2 and older ends even a disabled bar with an empty line
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
            console = Console(file=sys.stderr)
            self._progress = Progress(*columns, console=console, auto_refresh=False, transient=True)
            self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Self:
        if self._progress:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._progress:
            self._progress.stop()

    def show(self, text: str, done: int, total: int) -> None:
        if self._progress:
            from rich.markup import escape

            self._progress.update(self._task, description=escape(printable(text)), completed=done, total=total)
            self._progress.refresh()
