"""Read numbers from a command's output: its last number, a regular expression's group, a path in its JSON, or the last
number in a file that the command writes.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from pathlib import Path
from typing import Any

from cbench.study.instruments.instrument import FILE, JSON, LAST, REGEX, Instrument, NoNumber
from cbench.study.process.run_command import Execution

_NO_NUMBER = r"(?:nan|inf(?:inity)?)(?:[mnu\u00b5\u03bc]?s)?(?!\w)"
_JOINED = r"(?<=\d)[-,_'\u2019:/*^\u00d7\u00b1\u2212\u2013\u00a0\u2009\u202f](?=\d)"
"""Matches characters that join digits: grouping, decimal commas, times, dates, ranges, powers. After an ASCII space,
another number begins.
"""
TOKEN = re.compile(
    rf"(?<![\w.])[-+\u2212\u2013]?(?:{_NO_NUMBER}|\.?\d(?:\w|(?<=\d)\.(?=\w)|(?<=[eE])[-+](?=\d)|{_JOINED})*\.?)",
    re.IGNORECASE,
)
"""Matches an entire token that begins like a number."""
PLAIN = re.compile(r"(?!0[xX])([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[^\W\d_]*\.?")
GROUPED = re.compile(r"([-+]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,}))[^\W\d_]*\.?")
"""Matches a number (the group), optionally followed by a unit and the end of a sentence."""
MISSING = object()
LARGEST = 1e150
"""Larger numbers cannot be squared, so no analysis accepts them."""

MOST_FILE = 1 << 24
CHUNK = 1 << 16
UNTOUCHED_NS = 1_000_000_000
"""The modification time, in ns since 1970, that is set on a file of results before its trial."""
KERNELS = ("/proc/", "/sys/")
"""The directories with files that the kernel generates, which have new content without being written."""


class LastFloat(Instrument):
    """Reads the last number in the command's output."""

    source = LAST

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        return last_number(_text(done), "its output", '; to time the command: read = "wall"')


class Regex(Instrument):
    """Reads the group of a regular expression's last match."""

    source = REGEX
    argument = "EXPRESSION"

    def check(self, detail: str) -> None:
        try:
            groups = re.compile(detail).groups
        except re.error as error:
            raise ValueError(f"{detail!r} is not a regular expression: {error}") from None
        if groups != 1:
            raise ValueError(f"{detail!r}: must have exactly one group, (...), which matches the number")

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        matches = re.findall(detail, _text(done), re.MULTILINE)
        if not matches:
            raise NoNumber(f"nothing in its output matches {detail!r}")
        return _number(matches[-1])


class JsonPath(Instrument):
    """Reads the number at a path in the JSON that the command prints."""

    source = JSON
    argument = "PATH"

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        return _number(_path(_text(done), detail))


class FileNumber(Instrument):
    """Reads the last number in a file that the command must write during its trial."""

    source = FILE
    argument = "PATH"

    def __init__(self) -> None:
        self._untouched: dict[Path, int] = {}  # the modification time before the trial, in ns since 1970

    def prepare(self, detail: str, folder: str) -> None:
        """Set an old modification time on the file, to detect a file that the command does not write again.

        A file keeps its time if this is not permitted, as for files of other users.
        """
        path = Path(folder, detail)
        self._untouched.pop(path, None)
        with contextlib.suppress(OSError):
            if path.is_file() and not str(path).startswith(KERNELS):
                self._untouched[path] = path.stat().st_mtime_ns
                os.utime(path, ns=(UNTOUCHED_NS, UNTOUCHED_NS))
                self._untouched[path] = UNTOUCHED_NS

    def read(self, detail: str, done: Execution, folder: str) -> tuple[float, str]:
        path = Path(folder, detail)
        return last_number(_content(path, self._untouched.get(path)), detail)


def _text(done: Execution) -> str:
    return done.output.decode(errors="replace")


def last_number(text: str, where: str, hint: str = "") -> tuple[float, str]:
    """The last number in a text, with its original text. Raises NoNumber if there is no number, or if the last token is
    ambiguous or not a finite number. `where`: the name of the text in messages; `hint`: the end of the message if there
    is no number.
    """
    token = ""
    for found in TOKEN.finditer(text):
        token = found[0]
    if not token:
        raise NoNumber(f"no number in {where}{hint}")
    if not any(map(str.isdigit, token)):
        raise NoNumber(f"{token[:60]!r} is not a finite number")
    if plain := PLAIN.fullmatch(token):
        return _number(plain[1])
    if grouped := GROUPED.fullmatch(token):
        return _number(grouped[1].replace(",", ""))[0], grouped[1]
    raise NoNumber(f"{token[:60]!r} is not a plain number; read it with regex:EXPRESSION")


def _number(text: str) -> tuple[float, str]:
    try:
        value = float(text)
    except ValueError:
        raise NoNumber(f"{text[:60]!r} is not a number") from None
    if not math.isfinite(value):
        raise NoNumber(f"{text[:60]!r} is not a finite number")
    if abs(value) > LARGEST:
        raise NoNumber(f"{text[:60]!r} is beyond ±{LARGEST:g}, too large to be squared; use a larger unit")
    return value, text


def _path(text: str, path: str) -> str:
    """The text of the number at a path such as jobs.0.read.iops in the JSON of the output. Raises NoNumber if there is
    no number.

    Lines before the JSON are skipped; a key may contain dots.
    """
    found = _followed(_json(text), path.split("."))
    if found is MISSING:
        raise NoNumber(f"nothing at {path!r} in its output")
    if not isinstance(found, str):
        raise NoNumber(f"{path!r} in its output is not a number")
    return found


def _followed(inside: Any, steps: list[str]) -> Any:
    """The value at the path `steps`, or MISSING; among keys with dots, the shortest one that leads to a value is
    used.
    """
    if not steps:
        return inside
    if isinstance(inside, list):
        return _followed(inside[int(steps[0])], steps[1:]) if _index(steps[0], len(inside)) else MISSING
    if isinstance(inside, dict):
        for size in range(1, len(steps) + 1):
            key = ".".join(steps[:size])
            found = _followed(inside[key], steps[size:]) if key in inside else MISSING
            if found is not MISSING:
                return found
    return MISSING


def _index(step: str, size: int) -> bool:
    digits = step.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and -size <= int(step) < size


class _Lines(str):
    """A string whose count() returns 0, so that a JSON error does not count lines: each count would start at the
    beginning of the text, and its result is not used.
    """

    def count(self, *_: object) -> int:
        return 0


def _json(text: str) -> Any:
    """The JSON value at the end of the output, with numbers as text. Its first line begins with a bracket; earlier
    lines are skipped. Raises NoNumber if there is no such value.

    The search takes linear time: the text of a failed attempt is not parsed again, because no JSON value that begins in
    it can reach the end of the text.
    """
    decoder = json.JSONDecoder(parse_float=str, parse_int=str)
    text = _Lines(text.rstrip())
    why, end = "there is neither an object nor a list", 0
    for start in re.finditer(r"^[ \t]*(?=[\[{])", text, re.MULTILINE):
        if start.end() < end:
            continue
        try:
            found, end = decoder.raw_decode(text, start.end())
        except json.JSONDecodeError as error:
            why, end = error.msg, error.pos
            continue
        except RecursionError:
            raise NoNumber("its JSON output cannot be read: it is nested too deeply") from None
        if end == len(text):
            return found
        why = "other text follows the JSON value"
    raise NoNumber(f"its output is not JSON: {why}")


def _content(path: Path, untouched_ns: int | None) -> str:
    try:
        with path.open("rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_mtime_ns == untouched_ns:
                raise NoNumber(f"{path}: was not written in this trial")
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_FILE))
            parts = []
            while more := file.read(CHUNK):  # a kernel file may refuse large reads
                parts.append(more)
            return b"".join(parts).decode(errors="replace")
    except OSError as error:
        raise NoNumber(f"{path}: {error.strerror}") from None
