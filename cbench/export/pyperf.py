"""A store as a file of pyperf: a benchmark a test, a run a process, warm-ups as warm-ups, every value exact.

pyperf knows seconds, bytes and whole numbers (https://pyperf.readthedocs.io/en/latest/api.html#Benchmark.get_unit).
Cycles and ticks are whole numbers. Ticks become seconds only where the counter's facts give their rate (`hz`, and
`hz_from`: how it is known); a rate measured anew in each run would make equal values differ.
"""

from __future__ import annotations

import io
from datetime import datetime
from importlib import import_module
from typing import Any

from cbench.export.exporter import Exporter, ExportSource
from cbench.store.groups import Group, grouped
from cbench.store.records import StoredSeries
from quiet import UsageError

Metadata = dict[str, Any]
UNIT = "cbench_unit"
QUANTUM = "cbench_quantum"


class PyperfExporter(Exporter):
    """A benchmark a test, a run a process."""

    name = "pyperf"

    def write(self, source: ExportSource, clean_only: bool) -> str:
        if source.series is None:
            what, extra = source.what, source.extra
            raise UsageError(
                f"{source.path}: the store of {what}, whose {extra} pyperf's files cannot hold; "
                "use --format csv or parquet"
            )
        pyperf: Any = import_module("pyperf")  # it has no types
        benchmarks = []
        for group in grouped(source.series):
            runs = [run for each in group.series if (run := _run(pyperf, group, each, clean_only))]
            if runs:
                benchmarks.append(pyperf.Benchmark(runs))
        if not benchmarks:
            raise UsageError(
                "no undisturbed trial to export: leave --clean-only away" if clean_only else "no trials in it"
            )
        text = io.StringIO()
        pyperf.BenchmarkSuite(benchmarks).dump(text, compact=False)
        return text.getvalue()


def _run(pyperf: Any, group: Group, series: StoredSeries, clean_only: bool) -> Any:
    """A process as a run of pyperf, None when nothing is left of it."""
    values = [each.value for each in series.trials if not (clean_only and each.polluted)]
    warmups = series.warmup
    if not values:
        return None
    if min(values) == 0:
        raise UsageError(f"{group.name}: a trial of 0 {series.unit}, which pyperf cannot hold; use --format csv")
    hz = series.counter.get("hz")
    measured, before = ([value / hz for value in row] if hz else row for row in (values, warmups))
    before = [(1, value) for value in before]
    return pyperf.Run(measured, warmups=before, metadata=_metadata(group, series, clean_only), collect_metadata=False)


def _metadata(group: Group, series: StoredSeries, clean_only: bool) -> Metadata:
    host, counter = series.run.host, series.counter
    hz = counter.get("hz")
    metadata: Metadata = {
        "name": group.name,
        "unit": "second" if hz else "integer",
        "loops": 1,
        "date": datetime.fromtimestamp(series.started_ns / 1e9).isoformat(" "),
        "duration": (series.ended_ns - series.started_ns) / 1e9 if series.ended_ns else None,
        "cpu_affinity": str(series.cpu),
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


def _one_line(value: Any) -> Any:
    """pyperf's metadata are single lines without blanks around them."""
    return " ".join(value.split()) if isinstance(value, str) else value
