"""How a number is read from what a command has printed, or left behind."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

from cbench.study import model
from cbench.study.execute import Execution
from cbench.study.model import Metric

NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
MOST_FILE = 1 << 24


class NoNumber(Exception):
    """The text says why."""


def read(metric: Metric, done: Execution, folder: str) -> tuple[float, str]:
    """The number, and its text as it was found. Raises NoNumber."""
    times = {model.WALL: done.wall_s, model.USER: done.user_s, model.SYS: done.sys_s}
    if metric.source in times:
        return times[metric.source], repr(times[metric.source])
    if metric.source == model.FILE:
        return _number(_last(_content(Path(folder, metric.detail)), metric.detail))
    text = done.output.decode(errors="replace")
    if metric.source == model.REGEX:
        found = re.findall(metric.detail, text, re.MULTILINE)
        if not found:
            raise NoNumber(f"nothing in its output is like {metric.detail!r}")
        return _number(found[-1])
    if metric.source == model.JSON:
        return _number(_path(text, metric.detail))
    return _number(_last(text, "its output"))


def _last(text: str, where: str) -> str:
    found = NUMBER.findall(text)
    if not found:
        raise NoNumber(f"no number in {where}")
    return str(found[-1])


def _number(text: str) -> tuple[float, str]:
    try:
        value = float(text)
    except ValueError:
        raise NoNumber(f"{text[:60]!r} is no number") from None
    if not math.isfinite(value):
        raise NoNumber(f"{text!r} is no finite number")
    return value, text


def _content(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(MOST_FILE).decode(errors="replace")
    except OSError as error:
        raise NoNumber(f"{path}: {error.strerror}") from None


def _path(text: str, path: str) -> str:
    """The text of what lies at a path such as jobs.0.read.iops in the last JSON value of the output."""
    try:
        found = json.loads(text, parse_float=str, parse_int=str)
    except ValueError as error:
        raise NoNumber(f"its output is not JSON: {error}") from None
    for step in path.split("."):
        if isinstance(found, dict) and step in found:
            found = found[step]
        elif isinstance(found, list) and step.lstrip("-").isdecimal() and -len(found) <= int(step) < len(found):
            found = found[int(step)]
        else:
            raise NoNumber(f"no {step!r} of {path!r} in its output")
    if not isinstance(found, str):
        raise NoNumber(f"{path!r} in its output is no number")
    return found
