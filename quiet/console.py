"""Run `quiet` or `cbench`: write results safely, print expected errors as one line, and convert them to exit codes."""

from __future__ import annotations

import io
import os
import sys

from quiet.errors import QuietError, UsageError

TYPE_CHECKING = False  # same name as in typing
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_USAGE, INTERRUPTED = 2, 130
_COMPILED = ("cbench._cbench", "quiet.noise._noise")
_LONGEST = 480  # maximum length of a message, in characters
_STEERING = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for codes in (
        range(9),
        range(11, 32),
        range(127, 160),
        (0x61C, 0x200E, 0x200F),
        range(0x2028, 0x202F),
        range(0x2066, 0x206A),
    )
    for code in codes
}


def emit(text: str) -> None:
    """Write to stdout; a closed pipe ends the command silently, as in other programs."""
    try:
        sys.stdout.write(printable(text))
        sys.stdout.flush()
    except BrokenPipeError:
        raise OutputGone from None
    except OSError as error:
        error.filename = "stdout"
        raise


def printable(text: str) -> str:
    """The text with every control character except line feeds and tabs escaped, for example as \\x1b.

    A profile, a store or a recorded machine may be untrusted. The escaped characters are the control characters of ISO
    6429, and those that separate lines or reorder displayed text (Unicode Standard Annexes #14 and #9).
    """
    return text if text.isprintable() else text.translate(_STEERING)


def one_line(text: str) -> str:
    """The text as one printable line; if longer than `_LONGEST` characters, its middle is omitted."""
    line = printable(text.replace("\n", "\\n").replace("\t", "\\t"))
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 105]} ... {line[-100:]}"


def emit_json(shape: object) -> None:
    """Write one object to stdout as JSON."""
    import json

    emit(json.dumps(shape, indent=1) + "\n")


class OutputGone(QuietError):
    """The reader of stdout has closed it."""

    exit_code = 141


def table_html(title: str, head: Sequence[str], rows: Iterable[Sequence[object]], below: Sequence[str] = ()) -> str:
    """An HTML table with a caption, and lines of text below; every value is escaped."""
    from html import escape  # slow to load, and only needed in notebooks

    def text(value: object) -> str:
        return escape("-" if value is None else f"{value:,}" if isinstance(value, int | float) else str(value))

    cells = "".join(f"<th>{escape(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{text(value)}</td>' for value in row)}</tr>" for row in rows)
    lines = "".join(f"<p>{escape(line)}</p>" for line in below)
    return (
        f"<table><caption>{escape(title)}</caption><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>{lines}"
    )


def check_savable(path: str, option: str) -> None:
    """Raise UsageError if a file cannot be written to this path; called before the work, so that no result is lost."""
    if not path:
        raise UsageError(f"{option}: the file name is empty; write the path of a file")
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.path.isdir(folder):
        wrong = (
            "is a directory; name a file in it" if os.path.isdir(path) else f"no directory {folder}; create it first"
        )
        raise UsageError(f"{option} {path}: {wrong}")
    place = _followed(path)
    number = _number(place)
    if number is not None:
        if not _is_writable(number):
            raise UsageError(f"{option} {path}: not open for writing; give another file")
        return
    where = place if _is_stream(place) else os.path.dirname(place) or "."
    if not os.access(where, os.W_OK):
        raise UsageError(f"{option} {path}: not writable by this user; give another file")


def save(path: str, content: str | bytes, option: str) -> None:
    """Write a file atomically, or write directly to a pipe, a device or an open file. Raises QuietError."""
    place = _followed(path)
    number = _number(place)
    temporary = place if number is not None or _is_stream(place) else f"{place}.{os.getpid()}.new"
    try:
        if number is not None:  # reopening a file would overwrite it from its beginning
            fd = os.dup(number)
        else:
            new = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW if temporary != place else 0
            fd = os.open(temporary, os.O_WRONLY | os.O_CLOEXEC | new, 0o666)
        with open(fd, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        if temporary != place:
            os.replace(temporary, place)
    except BaseException as error:
        if temporary != place and os.path.exists(temporary):
            os.unlink(temporary)
        if not isinstance(error, OSError):
            raise
        raise QuietError(f"{option} {path}: {error.strerror}") from None


def _followed(path: str) -> str:
    """The path after following the symbolic links that this user owns. save() replaces any other link, because another
    user may have placed it.
    """
    for _ in range(40):  # as many as the kernel follows
        if _number(path) is not None or path.startswith("/proc/"):
            break
        if not os.path.islink(path) or os.lstat(path).st_uid != os.geteuid():
            break
        path = os.path.join(os.path.dirname(path), os.readlink(path))
    return path


def _number(path: str) -> int | None:
    """The number of the open file that a path such as /dev/stdout names; None for any other path."""
    folder, _, name = path.rpartition("/")
    if folder in ("/dev/fd", "/proc/self/fd") and name.isdecimal() and len(name) < 9:
        return int(name)
    return {"/dev/stdout": 1, "/dev/stderr": 2}.get(path)


def _is_writable(number: int) -> bool:
    import fcntl  # rarely needed

    try:
        return fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
    except OSError:
        return False


def _is_stream(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


def enter(app: Callable[..., object], name: str) -> None:
    """Run a Typer application and exit."""
    sys.exit(ended(lambda: app(prog_name=name, standalone_mode=False), name))


def ended(call: Callable[[], object], name: str) -> int:
    """Call a command and return its exit code; an expected error is printed as one line on stderr."""
    _open_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):  # do not fail if the locale lacks a character
        sys.stdout.reconfigure(errors="replace")
    try:
        code = call()
        emit("")
    except (OutputGone, BrokenPipeError):
        # output that could not be written stays in the buffer and must not fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return OutputGone.exit_code
    except QuietError as error:
        say(f"{name}: error: {error}")
        return error.exit_code
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        where = f"{error.filename}: " if error.filename else ""
        say(f"{name}: error: {where}{error.strerror or error}")
        return _USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _usage(error, name)
    return code if isinstance(code, int) else 0


def _open_streams() -> None:
    """Open /dev/null for stdin, stdout or stderr if the caller closed it: reads and writes then have no effect.

    This occupies the descriptors 0 to 2, so that no file opened later gets one of them and receives the output.
    """
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8", closefd=False)


def _usage(error: Exception, name: str) -> int:
    """Print a usage error from Typer, which is recognized by its methods because its class moved between versions."""
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    words = getattr(error, "format_message", None)
    if words is None:
        return _internal(error, name)
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stdout.write(f"{words()}\n")
        return _USAGE
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else name
    say(f"{name}: error: {' '.join(words().split())} (see `{command} --help`)")
    return _USAGE


def _internal(error: Exception, name: str) -> int:
    """Report a bug or unexpected input in one line, like any other error, with an exit code that no result uses."""
    if sys.flags.dev_mode:
        raise error
    if isinstance(error, ModuleNotFoundError) and error.name in _COMPILED:
        say(
            f"{name}: error: this command needs the compiled modules, which are missing; run `pip install .` in the "
            "source tree"
        )
        return _USAGE
    what = f"{type(error).__name__}: {error}"[:200] + f" at {raised_at(error)}"
    say(f"{name}: error: internal error: {what}; please report it (`python -X dev -m {name} ...` shows the traceback)")
    return _USAGE


def raised_at(error: BaseException) -> str:
    """The module and line that raised an error, such as "quiet.console:12"."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return f"{place.tb_frame.f_globals.get('__name__')}:{place.tb_lineno}" if place else "an unknown location"


def say(line: str) -> None:
    """Write a message to stderr as one line. Errors are ignored, so that the command continues."""
    try:
        sys.stderr.write(one_line(line) + "\n")
        sys.stderr.flush()
    except OSError:  # the buffered output must not fail again at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
