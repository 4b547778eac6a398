"""Summarize the history: each cause with its count, and its first, last and busiest minute."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import UsageError
from quiet.host.reader import Reader
from quiet.noise.attribute import Cause
from quiet.watch.history import MINUTE_S, NAME, OLD, CpuCounts
from quiet.watch.interrupt_counts import called

_UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_LATEST = 1e11  # latest time, in seconds since the epoch, that can be shown as a date


@dataclass(frozen=True, slots=True)
class CauseHistory:
    """A cause of interruptions.

    Times are whole minutes in seconds since the epoch; `busiest`: the minute with the most interruptions.
    """

    cause: str
    kind: str
    cpus: CpuSet
    count: int
    first: int
    last: int
    busiest: int
    busiest_count: int


@dataclass(frozen=True, slots=True)
class History:
    """A summary of the history since a time (`since` None: all of it), for one CPU, or for all (`cpu` None).

    `watched_s`: the watched time in seconds; `expected`: interruptions by the scheduler tick, by cause; `damaged`:
    the number of unreadable lines.
    """

    since: int | None
    cpu: int | None
    watched_s: int
    watched_cpus: CpuSet
    causes: tuple[CauseHistory, ...]
    expected: dict[str, int]
    damaged: int


@dataclass(slots=True)
class _Gathered:
    first: int
    last: int
    cpus: set[int] = field(default_factory=set)
    minutes: Counter[int] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Line:
    since: int
    until: int
    cpus: CpuSet
    counts: CpuCounts
    expected: bool


def since(text: str, now: float | None = None) -> float:
    """Parse a time of `--since`: "8h", "30min", "22:00" (the most recent), or a date with or without a time.

    Returns seconds since the epoch. Raises UsageError for any other text.
    """
    now = time.time() if now is None else now
    if match := re.fullmatch(r"(\d{1,6})(s|m|min|h|d)", text, re.ASCII):
        return now - int(match[1]) * _UNITS[match[2]]
    with contextlib.suppress(ValueError, OverflowError, OSError):
        if re.fullmatch(r"\d{1,2}:\d\d", text, re.ASCII):
            hour, minute = map(int, text.split(":"))
            then = datetime.fromtimestamp(now).replace(hour=hour, minute=minute, second=0, microsecond=0)
            return (then if then.timestamp() <= now else then - timedelta(days=1)).timestamp()
        return datetime.fromisoformat(text).timestamp()
    raise UsageError(f"--since {text!r}: not a time; write a time such as 8h, 30min, 22:00 or 2026-01-31T22:00")


def summarize(reader: Reader, folder: str, begin: float | None, cpu: int | None) -> History:
    """Summarize the history in a directory. Raises UsageError if there is none, or if it cannot be read."""
    gathered: dict[str, _Gathered] = {}
    expected: Counter[str] = Counter()
    watched, cpus, damaged = 0, set[int](), 0
    for line in _lines(reader, folder):
        if line is None:
            damaged += 1
            continue
        if (begin is not None and line.until <= begin) or (cpu is not None and cpu not in line.cpus):
            continue
        cpus |= line.cpus
        if not line.expected:
            watched += line.until - max(line.since, round(begin or 0))
        minute = line.until // MINUTE_S * MINUTE_S
        for number, causes in line.counts.items():
            if cpu is not None and number != cpu:
                continue
            for cause, count in causes.items():
                if line.expected:
                    expected[cause] += count
                    continue
                known = gathered.setdefault(cause, _Gathered(minute, minute))
                known.first, known.last = min(known.first, minute), max(known.last, minute)
                known.cpus.add(number)
                known.minutes[minute] += count
    rows = sorted((_cause(*item) for item in gathered.items()), key=lambda row: (-row.count, row.cause))
    usual = {called(_named(cause)): count for cause, count in expected.most_common()}
    begin_s = None if begin is None else round(begin)
    return History(begin_s, cpu, watched, frozenset(cpus), tuple(rows), usual, damaged)


def _cause(cause: str, each: _Gathered) -> CauseHistory:
    named = _named(cause)
    busiest, most = max(each.minutes.items(), key=lambda item: (item[1], -item[0]))
    cpus, count = frozenset(each.cpus), sum(each.minutes.values())
    return CauseHistory(called(named), named.kind, cpus, count, each.first, each.last, busiest, most)


def _named(cause: str) -> Cause:
    kind, _, name = cause.partition(" ")
    return Cause(kind, name)


def _lines(reader: Reader, folder: str) -> Iterator[_Line | None]:
    """Yield the lines of both files, the older file first; None for a damaged line.

    Raises UsageError if there is no history, or if it cannot be read.
    """
    found = False
    for name in (OLD, NAME):
        path = f"{folder}/{name}"
        try:
            lines = reader.data(path).split(b"\n")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(f"the history cannot be read: {path}: {error.strerror}") from None
        found = True
        yield from (_line(data) for data in lines if data.strip())
    if not found:
        raise UsageError(
            f"there is no history in {folder}; `quiet watch` records one in /var/lib/quiet (as root) or in --store DIR"
        )


def _line(data: bytes) -> _Line | None:
    with contextlib.suppress(
        ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, UsageError
    ):
        item = json.loads(data)
        expected = "expected" in item
        counts: CpuCounts = {}
        for cpu, causes in item["expected" if expected else "counts"].items():
            counts[int(cpu)] = {str(cause): int(count) for cause, count in causes.items()}
        begin, end = int(item["from"]), int(item["to"])
        if 0 <= begin <= end < _LATEST:
            return _Line(begin, end, cpulist.parse(item["cpus"]), counts, expected)
    return None
