"""Write results for the tools customSmallerIsBetter and customBiggerIsBetter of github-action-benchmark."""

from __future__ import annotations

import json
from statistics import median

from cbench.export.exporter import Exporter, ExportSource, headlines
from cbench.formats.reader import TestSample
from cbench.formats.units import is_rate
from quiet import UsageError

SMALLER, BIGGER = "github-action-benchmark", "github-action-benchmark-bigger"


class GithubActionExporter(Exporter):
    """Writes the median over each test's processes. The action supports one direction per file; rates belong in a file
    of customBiggerIsBetter.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, source: ExportSource, clean_only: bool) -> str:
        rates = self.name == BIGGER
        tests = [each for each in source.tests(clean_only) if is_rate(each.unit) == rates]
        if not tests:
            what, other = ("rates", SMALLER) if rates else ("times or sizes", BIGGER)
            raise UsageError(f"{source.path}: contains no {what}; use --format {other}")
        return json.dumps([_entry(each) for each in tests], indent=2) + "\n"


def _entry(sample: TestSample) -> dict[str, str | float]:
    values = headlines(sample)
    entry: dict[str, str | float] = {"name": sample.name, "unit": sample.unit, "value": median(values)}
    if len(values) > 1:
        entry["range"] = f"{min(values):.6g} to {max(values):.6g}"
    processes = "1 process" if len(values) == 1 else f"{len(values):,} processes"
    return entry | {"extra": f"{processes}, {sample.trials:,} values"}
