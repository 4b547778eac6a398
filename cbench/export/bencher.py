"""Write results in the Bencher Metric Format (https://bencher.dev/docs/reference/bencher-metric-format)."""

from __future__ import annotations

import json
import re
from statistics import median

from cbench.export.exporter import Exporter, ExportSource, headlines
from cbench.formats.reader import TestSample
from cbench.formats.units import TIMES, nanoseconds

Metric = dict[str, float]
NAME, SLUG = 1024, 64
"""The maximum length, in characters, of a name and of a slug in Bencher."""


class BencherExporter(Exporter):
    """Writes the median of the processes, with the lowest and the highest value.

    Times become the measure `latency` in ns, and operations per second become `throughput`; every other unit is a
    separate measure.
    """

    name = "bencher"

    def write(self, source: ExportSource, clean_only: bool) -> str:
        benchmarks: dict[str, dict[str, Metric]] = {}
        for each in source.tests(clean_only):
            name = each.name.removesuffix(f" {each.unit}") if each.unit else each.name
            benchmarks.setdefault(name[:NAME], {})[_measure(each)] = _metric(each)
        return json.dumps(benchmarks, indent=2) + "\n"


def _metric(sample: TestSample) -> Metric:
    values = headlines(sample)
    values = nanoseconds(sample.unit, values) or values
    metric: Metric = {"value": median(values)}
    return metric | {"lower_value": min(values), "upper_value": max(values)} if len(values) > 1 else metric


def _measure(sample: TestSample) -> str:
    if sample.unit in TIMES:
        return "latency"
    slug = re.sub(r"[^a-z0-9]+", "-", sample.unit.lower()).strip("-")[:SLUG]
    return "throughput" if sample.unit == "ops/s" else slug or "value"
