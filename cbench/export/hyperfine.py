"""Write results in the format of `hyperfine --export-json`, for scripts that read it: times in seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import fmean, median, stdev

from cbench.export.exporter import Exporter, ExportSource, headlines, seconds
from cbench.formats.reader import TestSample
from cbench.store.groups import Group, grouped
from quiet import UsageError

Value = str | float | None | list[float] | list[int]
COMMAND = ("command", "mean", "stddev", "median", "user", "system", "min", "max", "times", "exit_codes")
"""The keys in hyperfine's order."""


class HyperfineExporter(Exporter):
    """Writes each test as a command and each process as a run, because hyperfine's readers treat each time as
    independent.

    Only commands have `user`, `system` and `exit_codes`; `user` and `system` are means, as in hyperfine.
    """

    name = "hyperfine"
    samples = True

    def write(self, source: ExportSource, clean_only: bool) -> str:
        commands = {group.name: _of_commands(group, clean_only) for group in grouped(source.series or ())}
        results = [_result(source, each, commands.get(each.name, {})) for each in source.tests(clean_only)]
        return json.dumps({"results": results}, indent=2) + "\n"


def _result(source: ExportSource, sample: TestSample, command: Mapping[str, Value]) -> dict[str, Value]:
    times, processes = seconds(sample, headlines(sample)), len(sample.processes)
    if times is None:
        unit = f"the unit is {sample.unit}" if sample.unit else "there is no unit"
        raise UsageError(f"{source.path}: {sample.name}: {unit}, but hyperfine's files contain only seconds")
    if processes == 1 < sample.trials:
        more = sample.more_processes.replace("{n}", "10")
        raise UsageError(
            f"{source.path}: {sample.name}: {sample.trials:,} values of one process, which, unlike hyperfine's times, "
            f"are not independent; measure more processes ({more})"
        )
    found = {"command": sample.name, **_summary(times), **command}
    return {key: found[key] for key in COMMAND if key in found}


def _summary(times: Sequence[float]) -> dict[str, Value]:
    return {
        "mean": fmean(times),
        "stddev": stdev(times) if len(times) > 1 else None,
        "median": median(times),
        "min": min(times),
        "max": max(times),
        "times": list(times),
    }


def _of_commands(group: Group, clean_only: bool) -> dict[str, Value]:
    """The fields that only commands have, {} for other tests. The exit code of a build that ran several times is the
    highest one.
    """
    kept = [[each for each in one.trials if not (clean_only and each.polluted)] for one in group.processes]
    trials = [each for one in kept for each in one]
    if not trials or not all(series.each_trial for series in group.series):
        return {}
    return {
        "user": fmean(each.counts.get("user_us", 0) / 1e6 for each in trials),
        "system": fmean(each.counts.get("system_us", 0) / 1e6 for each in trials),
        "exit_codes": [max(each.trial.output for each in one) for one in kept if one],
    }
