"""Read the text of `go test -bench`, which is Go's benchmark data format.

Source: https://go.dev/design/14313-benchmark-format.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError
from cbench.formats.reader import Number, ResultReader, TestSample
from cbench.formats.units import NANOSECONDS

LINE = re.compile(rb"^Benchmark[^\sa-z]?\S*[ \t]+[0-9]+[ \t]+\S+[ \t]+\S+", re.MULTILINE)
KEY = re.compile(r"^([a-z][^\sA-Z:]*):[ \t]*(.*)$")


class BenchfmtReader(ResultReader):
    """A file is one process: `-count` repeats a benchmark in the same process. Times are in ns per operation.

    A benchmark's other units (B/op, MB/s, units of ReportMetric) are separate tests, with the unit in their names.
    """

    name = "Go benchmark text"
    more = (
        "run `go test -bench . -count 10` {n} times, each into a file of its own, and give the directory of these files"
    )

    def matches(self, content: Content) -> bool:
        return LINE.search(content.head) is not None

    def read(self, content: Content) -> tuple[TestSample, ...]:
        package, host = "", ""
        rows: dict[tuple[str, str, str], list[Number]] = {}
        for number, line in enumerate(content.text.splitlines(), start=1):
            key = KEY.match(line)
            if key and key[1] in ("pkg", "cpu"):
                package, host = (key[2], host) if key[1] == "pkg" else (package, key[2])
            elif line.startswith("Benchmark") and len(fields := line.split()) >= 4:
                for value, unit in _pairs(f"line {number}", fields):
                    rows.setdefault((package, fields[0], unit), []).append(value)
        packages = Counter(name for _, name in {(package, name) for package, name, _ in rows})
        return tuple(
            self.sample(
                (f"{package}." if packages[name] > 1 else "") + name + ("" if unit == "ns" else f" {unit}"),
                *(unit, [values]),
                host=host,
            )
            for (package, name, unit), values in rows.items()
        )


def _pairs(place: str, fields: list[str]) -> list[tuple[Number, str]]:
    """The values of a line with their units, [] for a line that the program printed. Raises DamagedError, with `place`,
    for a malformed line.
    """
    if not fields[1].isascii() or not fields[1].isdigit():
        return []  # a line that the benchmarked program printed
    if len(fields) % 2:
        raise DamagedError(place, "a value without a unit")
    return [_in_ns(place, text, unit) for text, unit in zip(fields[2::2], fields[3::2], strict=True)]


def _in_ns(place: str, text: str, unit: str) -> tuple[Number, str]:
    try:
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise DamagedError(place, f"{text[:40]!r} is not a finite number")
    time, _, per = unit.partition("/")
    if per == "op" and time == "sec":  # benchstat's name for this unit
        return value * 1e9, "ns"
    return (value * NANOSECONDS[time], "ns") if per == "op" and time in NANOSECONDS else (value, unit)
