"""Write results as Go's benchmark text, which `benchstat` reads (https://go.dev/design/14313-benchmark-format)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, count

from cbench.export.exporter import Exporter, ExportSource, headlines
from cbench.formats.reader import Number, TestSample
from cbench.formats.units import nanoseconds

PREFIX = "Benchmark"


class BenchfmtExporter(Exporter):
    """Writes a line per process, with the median of its trials, even if there is only one process.

    `benchstat` treats the lines of a benchmark as independent measurements; processes are independent, their trials are
    not. Times become ns/op.
    """

    name = "benchfmt"

    def write(self, source: ExportSource, clean_only: bool) -> str:
        tests = source.tests(clean_only)
        hosts = {each.host for each in tests}
        head = [f"cpu: {' '.join(each.split())}" for each in hosts if each] if len(hosts) == 1 else []
        lines = [line for name, samples in _benchmarks(tests).items() for line in _lines(name, samples)]
        return "\n".join([*head, *lines]) + "\n"


def _benchmarks(tests: Iterable[TestSample]) -> dict[str, list[TestSample]]:
    """The tests of each benchmark, at most one for each unit. Names that become equal get numbers, as in Go."""
    named: dict[str, list[TestSample]] = {}
    for each in tests:
        name = benchmark_name(each)
        tries = chain([name], (f"{name}#{number:02}" for number in count(1)))
        named.setdefault(next(free for free in tries if _joins(each, named.get(free, []))), []).append(each)
    return named


def _joins(sample: TestSample, others: Sequence[TestSample]) -> bool:
    """Whether a sample is from the same test as the others, in a unit that none of them has."""
    return all(_bare(sample) == _bare(other) and sample.unit != other.unit for other in others)


def _bare(sample: TestSample) -> str:
    """The test's name without its unit."""
    return sample.name.removesuffix(f" {sample.unit}") if sample.unit else sample.name


def _lines(name: str, samples: list[TestSample]) -> list[str]:
    """The lines of a benchmark; all of its units share lines if they have equally many values."""
    columns = [_column(each) for each in samples]
    if len({len(column) for column in columns}) > 1:
        return [f"{name} 1 {cell}" for column in columns for cell in column]
    return [f"{name} 1 {' '.join(cells)}" for cells in zip(*columns, strict=True)]


def _column(sample: TestSample) -> list[str]:
    values = headlines(sample)
    in_ns = nanoseconds(sample.unit, values)
    return [f"{_number(each)} {'ns/op' if in_ns else _unit(sample.unit)}" for each in in_ns or values]


def benchmark_name(sample: TestSample) -> str:
    """The test's name in the form of a Go benchmark's name: no blanks, and no lowercase letter after "Benchmark"."""
    name = re.sub(r"\s+", "_", _bare(sample).strip())
    if name.startswith(PREFIX):
        return name
    return PREFIX + (name[:1].upper() + name[1:] if name[:1].isalpha() else f"_{name}")


def _unit(unit: str) -> str:
    name = re.sub(r"\s+", "-", unit) or "value"
    return name if "/" in name else f"{name}/op"


def _number(value: Number) -> str:
    """The number with all its digits; whole numbers have no exponent."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(value)
