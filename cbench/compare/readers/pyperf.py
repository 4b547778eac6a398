"""Read a JSON file of pyperf, plain or compressed."""

from __future__ import annotations

import math
import zlib
from importlib import import_module
from pathlib import Path
from typing import Any

from cbench.compare.readers.reader import ResultReader, TestSample
from quiet import UsageError

_DAMAGE = ArithmeticError, AttributeError, EOFError, LookupError, RecursionError, TypeError, ValueError, zlib.error


class PyperfReader(ResultReader):
    """A benchmark a test, a run a process."""

    name = "a JSON file of pyperf"

    def matches(self, path: Path) -> bool:
        try:
            with open(path, "rb") as file:
                return file.read(1) in (b"{", b"\x1f")
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from None

    def read(self, path: Path) -> tuple[TestSample, ...]:
        pyperf: Any = import_module("pyperf")
        try:
            suite = pyperf.BenchmarkSuite.load(str(path))
            return tuple(_of_benchmark(path, benchmark) for benchmark in suite)
        except OSError as error:
            raise UsageError(f"{path}: {error.strerror or error}") from None
        except _DAMAGE as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())
            raise UsageError(f"{path}: not a JSON file of pyperf ({why})") from None


def _of_benchmark(path: Path, benchmark: Any) -> TestSample:
    """Calibration runs have no values and are left out; our own exports say what the whole numbers are."""
    metadata = benchmark.get_metadata()
    unit = benchmark.get_unit()
    whole = unit == "integer"
    processes = tuple(tuple(run.values) for run in benchmark.get_runs() if run.values)
    if not processes:
        raise UsageError(f"{path}: {benchmark.get_name()} has no values")
    if not all(math.isfinite(value) for values in processes for value in values):
        raise UsageError(f"{path}: {benchmark.get_name()} has a value that is not finite")
    return TestSample(
        name=benchmark.get_name(),
        test=benchmark.get_name(),
        workload=str(metadata.get("cbench_workload", "")),
        unit=str(metadata.get("cbench_unit", unit)) if whole else unit,
        quantum=int(metadata.get("cbench_quantum", 1)) if whole else 1,
        cpu=None,
        host=str(metadata.get("cpu_model_name", "")),
        processes=processes,
        clean=processes,
        counter=str(metadata.get("cbench_counter", "")) if whole else "",
        method=str(metadata.get("cbench_method", "")) if whole else "",
    )
