"""How a number is read from what a command has printed, or left behind."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
from pathlib import Path
from typing import Any

from cbench.study import model
from cbench.study.instruments import perf_data
from cbench.study.instruments.perf_data import Samples
from cbench.study.model import Metric
from cbench.study.run_command import Execution

_NO_NUMBER = r"(?:nan|inf(?:inity)?)(?:[mnu\u00b5\u03bc]?s)?(?!\w)"
_JOINED = r"(?<=\d)[-,_'\u2019:/*^\u00d7\u00b1\u2212\u2013\u00a0\u2009\u202f](?=\d)"
"""Between digits: groups of them, decimal commas, times, dates, ranges, powers; a space begins another number."""
TOKEN = re.compile(
    rf"(?<![\w.])[-+\u2212\u2013]?(?:{_NO_NUMBER}|\.?\d(?:\w|(?<=\d)\.(?=\w)|(?<=[eE])[-+](?=\d)|{_JOINED})*\.?)",
    re.IGNORECASE,
)
"""What begins like a number, up to where that ends."""
PLAIN = re.compile(r"(?!0[xX])([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[^\W\d_]*\.?")
GROUPED = re.compile(r"([-+]?\d{1,3}(?:(?:,\d{3})+\.\d+|(?:,\d{3}){2,}))[^\W\d_]*\.?")
"""A number, the group, with a unit and the end of a sentence behind it."""
MISSING = object()
MOST_FILE = 1 << 24
CHUNK = 1 << 16
UNTOUCHED_NS = 1_000_000_000
"""Since 1970: the time given to a file of results before its trial."""
KERNELS = ("/proc/", "/sys/", "/dev/")
"""Files there have their content without being written."""


class NoNumber(Exception):
    """The text says why."""


def read(metric: Metric, done: Execution, folder: str) -> tuple[float, str]:
    """The number, and its text as it was found. Raises NoNumber."""
    times = dict(zip(model.TIMES, (done.wall_s, done.user_s, done.sys_s, done.running_s), strict=True))
    if metric.source in times:
        return times[metric.source], repr(times[metric.source])
    if metric.source in model.COUNTS:
        count = done.counts.get(metric.source, "was not counted")
        if isinstance(count, str):
            raise NoNumber(f"{metric.source}: {count}")
        return (count / 1e9, f"{count} ns") if metric.source in model.CLOCKS else (float(count), str(count))
    if metric.source in (model.SAMPLES, model.PERF_DATA):
        return _samples(metric, done, folder)
    if metric.source == model.FILE:
        return _last(_content(Path(folder, metric.detail)), metric.detail)
    text = done.output.decode(errors="replace")
    if metric.source == model.REGEX:
        found = re.findall(metric.detail, text, re.MULTILINE)
        if not found:
            raise NoNumber(f"nothing in its output is like {metric.detail!r}")
        return _number(found[-1])
    if metric.source == model.JSON:
        return _number(_path(text, metric.detail))
    return _last(text, "its output")


def _samples(metric: Metric, done: Execution, folder: str) -> tuple[float, str]:
    found: Samples | str = done.samples
    if metric.source == model.PERF_DATA:
        path = Path(folder, metric.detail)
        try:
            if path.stat().st_mtime_ns == UNTOUCHED_NS:
                raise NoNumber(f"{path}: was not written in this trial")
            found = perf_data.count(path)
        except OSError as error:
            raise NoNumber(f"{path}: {error.strerror}") from None
        except perf_data.NoSamples as error:
            raise NoNumber(str(error)) from None
    if isinstance(found, str):
        raise NoNumber(f"{metric.source}: {found}")
    return float(found.samples), str(found.samples)


def _last(text: str, where: str) -> tuple[float, str]:
    """The last number; never a part of what may mean another one, and never one before what is no number."""
    token = ""
    for found in TOKEN.finditer(text):
        token = found[0]
    if not token:
        raise NoNumber(f"no number in {where}")
    if not any(map(str.isdigit, token)):
        raise NoNumber(f"{token[:60]!r} is no finite number")
    if plain := PLAIN.fullmatch(token):
        return _number(plain[1])
    if grouped := GROUPED.fullmatch(token):
        return _number(grouped[1].replace(",", ""))[0], grouped[1]
    raise NoNumber(f"{token[:60]!r} is no plain number; use regex:")


def _number(text: str) -> tuple[float, str]:
    try:
        value = float(text)
    except ValueError:
        raise NoNumber(f"{text[:60]!r} is no number") from None
    if not math.isfinite(value):
        raise NoNumber(f"{text!r} is no finite number")
    return value, text


def prepare(metric: Metric, folder: str) -> None:
    """Before a trial: have a result's file look as old as can be, so that one that is not written again is noticed."""
    path = Path(folder, metric.detail)
    if metric.source in (model.FILE, model.PERF_DATA) and not str(path).startswith(KERNELS):
        with contextlib.suppress(OSError):
            os.utime(path, ns=(UNTOUCHED_NS, UNTOUCHED_NS))


def _content(path: Path) -> str:
    try:
        with path.open("rb", buffering=0) as file:
            if os.fstat(file.fileno()).st_mtime_ns == UNTOUCHED_NS:
                raise NoNumber(f"{path}: was not written in this trial")
            file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_FILE))
            parts = []
            while more := file.read(CHUNK):  # a file of the kernel's may refuse to be asked for much at once
                parts.append(more)
            return b"".join(parts).decode(errors="replace")
    except OSError as error:
        raise NoNumber(f"{path}: {error.strerror}") from None


def _path(text: str, path: str) -> str:
    """The text of what lies at a path such as jobs.0.read.iops in the JSON of the output.

    Lines before the JSON are passed over; a key may have dots in it.
    """
    found = _followed(_json(text), path.split("."))
    if found is MISSING:
        raise NoNumber(f"nothing at {path!r} in its output")
    if not isinstance(found, str):
        raise NoNumber(f"{path!r} in its output is no number")
    return found


def _followed(inside: Any, steps: list[str]) -> Any:
    """What lies there, or MISSING; the shortest key that leads on is taken."""
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


def _json(text: str) -> Any:
    """The output's JSON, numbers as their texts; it may begin at any line that begins with a bracket."""
    decoder = json.JSONDecoder(parse_float=str, parse_int=str)
    why = "there is no object and no list"
    for start in re.finditer(r"^[ \t]*(?=[\[{])", text, re.MULTILINE):
        try:
            found, end = decoder.raw_decode(text, start.end())
        except (ValueError, RecursionError) as error:
            why = str(error)
            continue
        if not text[end:].strip():
            return found
        why = "something else is behind it"
    raise NoNumber(f"its output is not JSON: {why}")
