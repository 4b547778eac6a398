"""Read a results file of asv (airspeed velocity): results/MACHINE/COMMIT-ENVIRONMENT.json.

Source: https://asv.readthedocs.io/en/stable/dev.html#benchmark-suite-layout-and-file-formats. Since version 2 of the
format (asv 0.5) a result is an array in the order of `result_columns`; before that, it is an object or a bare value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError, JsonValue
from cbench.formats.reader import Number, ResultReader, TestSample

UNITS = {"time": "second", "timeraw": "second", "mem": "byte", "peakmem": "byte"}
"""The unit for the first word of a benchmark's name, as asv defines it. A results file contains no units."""
SUMMARY = "the file contains only medians: run asv with --record-samples"


class AsvReader(ResultReader):
    """A file is one process, because it does not record asv's own processes. Times are in seconds.

    Each combination of parameters is a test. Benchmarks that failed or were skipped are omitted.
    """

    name = "asv results"
    more = (
        "run asv with --record-samples {n} times, copy the results file of each run into one directory, and give this "
        "directory"
    )

    def matches(self, content: Content) -> bool:
        document = content.json
        return document is not None and document.has("results", "commit_hash")

    def read(self, content: Content) -> tuple[TestSample, ...]:
        document = content.json
        assert document is not None
        cpu = document["params"].get("cpu") if document.get("params") else None
        host = "" if cpu is None else cpu.text()
        columns = document.get("result_columns")
        names = None if columns is None else [each.text() for each in columns.items()]
        tests = [
            test
            for name, result in document["results"].members()
            if result.value is not None
            for test in self._tests(name, _fields(result, names), host)
        ]
        if not tests:
            raise DamagedError("results", "no benchmark succeeded")
        return tuple(tests)

    def _tests(self, name: str, fields: dict[str, JsonValue], host: str) -> list[TestSample]:
        """A test for each combination of parameters that has a value."""
        results, params = fields.get("result"), fields.get("params")
        if results is None:
            return []
        values = results.items() if results.is_list else [results]
        axes = [] if params is None else [[each.text() for each in axis.items()] for axis in params.items()]
        combinations: list[tuple[str, ...]] = list(product(*axes)) if _size(axes) == len(values) else []
        if not combinations:
            raise DamagedError(
                results.place, f"{len(values):,} values, but the parameters have {_size(axes):,} combinations"
            )
        samples = fields.get("samples")
        rows = [None] * len(values) if samples is None or not samples.is_list else list(samples.items())
        begun, unit = _begun(fields), UNITS.get(name.rpartition(".")[2].partition("_")[0], "")
        tests = []
        for at, (value, combination) in enumerate(zip(values, combinations, strict=True)):
            if value.value is None or (isinstance(value.value, float) and math.isnan(value.value)):
                continue  # the benchmark failed or was skipped
            of = rows[at] if at < len(rows) else None
            has = of is not None and of.is_list and of.value != []
            numbers: tuple[Number, ...] = of.numbers() if has and of is not None else (value.number(),)
            called = f"{name}({', '.join(combination)})" if combination else name
            # benchmarks of memory and of tracked numbers have a single value
            summary = SUMMARY if not has and unit == "second" else ""
            tests.append(self.sample(called, unit, [numbers], host=host, begun=begun, summary=summary))
        return tests


def _size(axes: Sequence[Sequence[str]]) -> int:
    return math.prod(len(axis) for axis in axes)


def _fields(result: JsonValue, columns: list[str] | None) -> dict[str, JsonValue]:
    """The fields of a result that are not null, by their names."""
    if columns is not None and result.is_list:
        pairs = list(zip(columns, result.items(), strict=False))  # asv omits trailing columns
    elif result.has():
        pairs = list(result.members())
    else:
        pairs = [("result", result)]
    return {name: value for name, value in pairs if value.value is not None}


def _begun(fields: dict[str, JsonValue]) -> tuple[int, ...]:
    """The start time in ns since 1970, from `started_at` (in ms); () if missing."""
    started = fields.get("started_at")
    return () if started is None else (round(started.number() * 1e6),)
