"""Export results as a pyperf file: one benchmark per test, one run per process, with warm-ups marked and exact values.

pyperf's units are seconds, bytes and whole numbers
(https://pyperf.readthedocs.io/en/latest/api.html#Benchmark.get_unit). Cycles, and ticks of unknown rate,
are exported as whole numbers. Ticks are converted to seconds only if the counter's facts contain their rate (`hz`, and
its source `hz_from`); a rate measured in each run would make equal values differ.
"""

from __future__ import annotations

import io
import json
from datetime import datetime
from importlib import import_module
from typing import Any

from cbench.export.exporter import Exporter, ExportSource, seconds
from cbench.formats.pyperf import NAME
from cbench.formats.reader import TestSample
from cbench.store.groups import Group, Process, grouped
from cbench.store.records import NO_CPU, StoredSeries
from quiet import UsageError

Metadata = dict[str, Any]
UNIT = "cbench_unit"
QUANTUM = "cbench_quantum"


class PyperfExporter(Exporter):
    """Writes a benchmark per test and a run per process."""

    name = "pyperf"
    samples = True

    def write(self, source: ExportSource, clean_only: bool) -> str:
        if source.samples is not None:
            pyperf = import_module("pyperf")
            return _dumped(pyperf, [_of_sample(pyperf, source, each) for each in source.tests(clean_only)])
        if source.series is None:
            what, extra = source.what, source.extra
            raise UsageError(
                f"{source.path}: the store of {what}, whose {extra} pyperf's files cannot represent; "
                "use --format csv or parquet"
            )
        pyperf = import_module("pyperf")
        benchmarks = []
        for group in grouped(source.series):
            runs = [run for each in group.processes if (run := _run(pyperf, group, each, clean_only))]
            if runs:
                benchmarks.append(pyperf.Benchmark(runs))
        if not benchmarks:
            raise UsageError(
                f"{source.path}: no undisturbed trial to export: omit --clean-only"
                if clean_only
                else f"{source.path}: contains no trials"
            )
        return _dumped(pyperf, benchmarks)


def _dumped(pyperf: Any, benchmarks: list[Any]) -> str:
    text = io.StringIO()
    pyperf.BenchmarkSuite(benchmarks).dump(text, compact=False)
    return text.getvalue()


def _of_sample(pyperf: Any, source: ExportSource, sample: TestSample) -> Any:
    """A pyperf benchmark for a test of another program. Raises UsageError unless all values are above 0, and either the
    unit is a time or all values are whole numbers.
    """
    times = [seconds(sample, of) for of in sample.processes]
    is_time = times[0] is not None
    values = [of or own for of, own in zip(times, sample.processes, strict=True)]
    if not is_time and not all(float(value).is_integer() for of in values for value in of):
        unit = f"the unit is {sample.unit}" if sample.unit else "there is no unit"
        raise UsageError(
            f"{source.path}: {sample.name}: {unit}, but pyperf supports only seconds, bytes and whole numbers"
        )
    if min(min(of) for of in values) <= 0:
        raise UsageError(f"{source.path}: {sample.name}: a value of 0, which pyperf cannot represent; use --format csv")
    unit = "second" if is_time else "byte" if sample.unit in ("byte", "B/op") else "integer"
    metadata = {**_named(sample.name), "unit": unit, "loops": 1, UNIT: sample.unit, "cpu_model_name": sample.host}
    kept = {name: _one_line(value) for name, value in metadata.items() if value != ""}
    whole = [[value if is_time else int(value) for value in of] for of in values]
    return pyperf.Benchmark([pyperf.Run(of, metadata=kept, collect_metadata=False) for of in whole])


def _run(pyperf: Any, group: Group, process: Process, clean_only: bool) -> Any:
    """A process as a pyperf run, None if the process has no trial to export. Raises UsageError for a trial of 0."""
    series = process.series
    values = [each.value for each in process.trials if not (clean_only and each.polluted)]
    warmups = series.warmup if len(series.processes) == 1 else []
    if not values:
        return None
    if min(values) == 0:
        raise UsageError(f"{group.name}: a trial of 0 {series.unit}, which pyperf cannot represent; use --format csv")
    hz = _per_second(series)
    measured, discarded = ([value / hz for value in row] if hz else row for row in (values, warmups))
    before = [(1, value) for value in discarded]
    return pyperf.Run(measured, warmups=before, metadata=_metadata(group, process, clean_only), collect_metadata=False)


def _metadata(group: Group, process: Process, clean_only: bool) -> Metadata:
    series = process.series
    host, counter = series.run.host, series.counter
    hz = _per_second(series)
    metadata: Metadata = {
        **_named(group.name),
        "unit": "second" if hz else "integer",
        "loops": 1,
        "date": datetime.fromtimestamp((process.begun_ns or series.started_ns) / 1e9).isoformat(" "),
        "duration": (series.ended_ns - series.started_ns) / 1e9 if series.ended_ns else None,
        "cpu_affinity": "" if series.cpu == NO_CPU else str(series.cpu),
        "cpu_model_name": host.get("cpu"),
        "hostname": host.get("hostname"),
        "platform": host.get("kernel") and f"Linux-{host['kernel']}-{host.get('machine', '')}",
        UNIT: series.unit,
        QUANTUM: series.quantum,
        "cbench_counter": counter.get("name"),
        "cbench_method": counter.get("method"),
        "cbench_version": series.run.version,
        "cbench_workload": series.workload,
        "cbench_params": " ".join(f"{name}={value}" for name, value in sorted(series.params.items())),
        "cbench_process": series.process,
        "cbench_polluted": sum(each.polluted for each in series.trials),
        "cbench_trials": "undisturbed ones only" if clean_only else "all",
    }
    if hz:
        metadata |= {"cbench_hz": hz, "cbench_hz_from": counter.get("hz_from") or "the counter"}
    return {name: _one_line(value) for name, value in metadata.items() if value not in (None, "")}


def _per_second(series: StoredSeries) -> float | None:
    """The number of the series' units per second; None unless the unit is a time."""
    return 1e9 if series.unit == "ns" else series.counter.get("hz")


def _named(name: str) -> Metadata:
    """The metadata for a test's name; a name that is not a single line is also stored in full, as JSON."""
    return {"name": name} | ({} if _one_line(name) == name else {NAME: json.dumps(name)})


def _one_line(value: Any) -> Any:
    """The value as one line without surrounding blanks, as pyperf requires for metadata."""
    return " ".join(value.split()) if isinstance(value, str) else value
