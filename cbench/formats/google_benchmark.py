"""Read the JSON of google/benchmark (`--benchmark_out=FILE --benchmark_out_format=json`)."""

from __future__ import annotations

from dataclasses import replace

from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError, JsonValue
from cbench.formats.reader import Number, ResultReader, TestSample
from cbench.formats.units import NANOSECONDS

AGGREGATES = ("median", "mean")
"""The summaries that may represent a benchmark, in order of preference."""
MARKS = "error_occurred", "skipped"
MESSAGES = "error_message", "skip_message"


class GoogleBenchmarkReader(ResultReader):
    """A file is one process, and its repetitions are the process's values: real time per iteration, in ns.

    Each value is already a mean over `iterations`. Benchmarks that ended with an error have no values.
    """

    name = "google/benchmark JSON"
    more = (
        "run the benchmark program {n} times, each with its own --benchmark_out, and give the directory of these files"
    )

    def matches(self, content: Content) -> bool:
        document = content.json
        return document is not None and document.has("context", "benchmarks")

    def read(self, content: Content) -> tuple[TestSample, ...]:
        document = content.json
        assert document is not None
        date = document["context"].get("date")
        begun = () if date is None else (date.moment(),)
        values: dict[str, list[Number]] = {}
        summaries: dict[str, dict[str, Number]] = {}
        failed: dict[str, str] = {}
        for each in document["benchmarks"].items():
            aggregate = _aggregate(each)
            if aggregate == "" and (error := _error(each)):
                failed[each["name"].text()] = error[:100]
            elif aggregate == "":
                values.setdefault(each["name"].text(), []).append(_time(each))
            elif aggregate in AGGREGATES:
                name = each["run_name"].text() if each.get("run_name") else _stem(each["name"].text(), aggregate)
                summaries.setdefault(name, {})[aggregate] = _time(each)
        samples = [self.sample(name, "ns", [some], begun=begun) for name, some in values.items()]
        why = "the file contains only summaries: run without --benchmark_report_aggregates_only"
        for name, some in summaries.items():
            if name not in values:
                value = next(some[each] for each in AGGREGATES if each in some)
                samples.append(self.sample(name, "ns", [[value]], begun=begun, summary=why))
        samples += [
            replace(self.sample(name, "ns", [], begun=()), failed=(error,))
            for name, error in failed.items()
            if name not in values
        ]
        return tuple(samples)


def _aggregate(entry: JsonValue) -> str:
    """The name of the summary, "" for a repetition. Before version 1.5, only the end of a name marks a summary."""
    kind = entry.get("run_type")
    if kind is not None:
        name = entry.get("aggregate_name")
        return "" if kind.text() == "iteration" else "other" if name is None else name.text()
    ending = entry["name"].text().rpartition("_")[2]
    return ending if ending in (*AGGREGATES, "stddev", "cv", "BigO", "RMS") else ""


def _stem(name: str, aggregate: str) -> str:
    return name.removesuffix(f"_{aggregate}")


def _error(entry: JsonValue) -> str:
    """The reason why a benchmark has no time, "" if it has one (`error_occurred` up to version 1.7, `skipped` since
    1.8).
    """
    if any((mark := entry.get(key)) is not None and mark.value not in (False, "") for key in MARKS):
        message = next((found for key in MESSAGES if (found := entry.get(key))), None)
        return message.text() if message else "an error"
    return ""


def _time(entry: JsonValue) -> Number:
    unit = entry.get("time_unit")
    name = "ns" if unit is None else unit.text()
    if name not in NANOSECONDS:
        raise DamagedError(f"{entry.place}.time_unit", f"{name[:20]!r} is not one of {', '.join(NANOSECONDS)}")
    return entry["real_time"].number() * NANOSECONDS[name]
