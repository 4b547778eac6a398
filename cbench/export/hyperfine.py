"""Results as the file that `hyperfine --export-json` writes, for the scripts that read it: times in seconds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from statistics import fmean, median, stdev

from cbench.export.exporter import Exporter, ExportSource, seconds
from cbench.formats.reader import TestSample
from cbench.store.groups import Group, grouped
from cbench.store.records import Stored
from quiet import UsageError

Value = str | float | None | list[float] | list[int]


class HyperfineExporter(Exporter):
    """A command a result, in hyperfine's order of keys; `user` and `system` are means, as there.

    Of other programs' results, `user`, `system` and `exit_codes` are not known, and left out.
    """

    name = "hyperfine"
    samples = True

    def write(self, source: ExportSource, clean_only: bool) -> str:
        if source.samples is not None:
            results = [_of_sample(source, each) for each in source.tests(clean_only)]
            return json.dumps({"results": results}, indent=2) + "\n"
        if source.series is None:
            raise UsageError(f"{source.path}: the store of {source.what}; hyperfine's files have commands alone")
        results = []
        for group in grouped(source.series):
            if group.unit != "ns":
                raise UsageError(f"{source.path}: {group.name}: {group.unit}, and hyperfine's files have seconds alone")
            trials = [each for series in group.series for each in series.trials if not (clean_only and each.polluted)]
            if trials:
                results.append(_result(group, trials))
        if not results:
            raise UsageError("no undisturbed trial to export: leave --clean-only away")
        return json.dumps({"results": results}, indent=2) + "\n"


def _of_sample(source: ExportSource, sample: TestSample) -> dict[str, Value]:
    times = seconds(sample, [value for of in sample.processes for value in of])
    if times is None:
        unit = sample.unit or "no unit"
        raise UsageError(f"{source.path}: {sample.name}: {unit}, and hyperfine's files have seconds alone")
    return {"command": sample.name, **_summary(times)}


def _summary(times: Sequence[float]) -> dict[str, Value]:
    return {
        "mean": fmean(times),
        "stddev": stdev(times) if len(times) > 1 else None,
        "median": median(times),
        "min": min(times),
        "max": max(times),
        "times": list(times),
    }


def _result(group: Group, trials: list[Stored]) -> dict[str, Value]:
    summary = _summary([each.value / 1e9 for each in trials])
    return {
        "command": group.name,
        **{key: summary[key] for key in ("mean", "stddev", "median")},
        "user": fmean(each.counts.get("user_us", 0) / 1e6 for each in trials),
        "system": fmean(each.counts.get("system_us", 0) / 1e6 for each in trials),
        **{key: summary[key] for key in ("min", "max", "times")},
        "exit_codes": [each.trial.output for each in trials],
    }
