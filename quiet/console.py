"""How both commands start and end: one line on stderr for every expected error, and an exit code."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable

from quiet.errors import QuietError, UsageError

_USAGE, _INTERRUPTED = 2, 130


def emit(text: str) -> None:
    """Write to stdout; a reader that has gone ends the command without a word, as it ends others."""
    try:
        sys.stdout.write(text)
    except BrokenPipeError:
        raise OutputGone from None


def emit_json(shape: object) -> None:
    """Write one object to stdout."""
    import json

    emit(json.dumps(shape, indent=1) + "\n")


class OutputGone(QuietError):
    """Nobody reads what is printed."""

    exit_code = 141


def check_savable(path: str, option: str) -> None:
    """Raises UsageError when a file cannot be written there: before the work, not after it."""
    if not path:
        raise UsageError(f"{option}: the name of a file is missing")
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.path.isdir(folder):
        raise UsageError(f"{option} {path}: " + ("is a directory" if os.path.isdir(path) else f"no directory {folder}"))
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise UsageError(f"{option} {path}: not writable")


def save(path: str, text: str, option: str) -> None:
    """Write a file whole or not at all. Raises QuietError."""
    beside = f"{path}.{os.getpid()}.new"
    temporary = path if os.path.exists(path) and not os.path.isfile(path) else beside  # a pipe, a terminal
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        if temporary != path:
            os.replace(temporary, path)
    except BaseException as error:
        if temporary != path and os.path.exists(temporary):
            os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        raise QuietError(f"{option} {path}: {error.strerror}") from None


def enter(app: Callable[..., object], name: str) -> None:
    """Run a Typer application and exit."""
    sys.exit(ended(lambda: app(prog_name=name, standalone_mode=False), name))


def ended(call: Callable[[], object], name: str) -> int:
    """The exit code of a call; every expected error of it is one line on stderr."""
    if sys.stdout is None:  # closed by whoever started this: nothing is to be said
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")
    if isinstance(sys.stdout, io.TextIOWrapper):  # a locale without UTF-8 lacks letters: no reason to end
        sys.stdout.reconfigure(errors="replace")
    try:
        code = call()
        sys.stdout.flush()
    except (OutputGone, BrokenPipeError):
        # what could not be written stays in the buffer; it shall not fail once more at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OutputGone.exit_code
    except QuietError as error:
        _say(f"{name}: error: {error}")
        return error.exit_code
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        where = f"{error.filename}: " if error.filename else ""
        _say(f"{name}: error: {where}{error.strerror or error}")
        return _USAGE
    except KeyboardInterrupt:
        return _INTERRUPTED
    except Exception as error:
        return _usage(error, name)
    return code if isinstance(code, int) else 0


def _usage(error: Exception, name: str) -> int:
    """Typer's own errors; its classes moved between versions, so they are known by what they can do."""
    if type(error).__name__ == "Abort":
        return _INTERRUPTED
    words = getattr(error, "format_message", None)
    if words is None:
        raise error
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stdout.write(f"{words()}\n")
        return _USAGE
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else name
    _say(f"{name}: error: {' '.join(words().split())} (see `{command} --help`)")
    return _USAGE


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
