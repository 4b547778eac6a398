"""What `cbench compare` compares: the tests of a store, or of one of pyperf's own files."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from cbench.store.groups import Group, grouped
from cbench.store.kind import is_store
from cbench.store.store import Store
from cbench.study.store import is_study
from quiet.errors import UsageError

Number = int | float


@dataclass(frozen=True, slots=True)
class TestSample:
    """One test's values, a tuple a process; `clean` are those of its undisturbed trials, `cpu` None where unknown.

    `counter`: what was counted, `method`: how it was read; "" where that is not known.
    """

    name: str
    test: str
    workload: str
    unit: str
    quantum: int
    cpu: int | None
    host: str
    processes: tuple[tuple[Number, ...], ...]
    clean: tuple[tuple[Number, ...], ...]
    cut_short: int = 0
    counter: str = ""
    method: str = ""

    @property
    def trials(self) -> int:
        return sum(len(values) for values in self.processes)

    def like(self, other: TestSample) -> bool:
        """Whether both are numbers of one kind: cycles in user mode alone are no cycles of all modes."""
        return self.unit == other.unit and (self.counter == other.counter or not (self.counter and other.counter))

    @property
    def polluted(self) -> int:
        return self.trials - sum(len(values) for values in self.clean)


def load(text: str) -> tuple[list[TestSample], bool]:
    """The tests of FILE or of FILE:TEST, and whether some were selected so. UsageError for what cannot be read."""
    path, selection = _split(text)
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, not a file")
    if not path.is_file():  # a pipe, which would be waited for, or a device
        raise UsageError(f"{path}: not an ordinary file")
    samples = _of_store(path) if is_store(path) else _of_pyperf(path)
    if selection is None:
        return samples, False
    chosen = [sample for sample in samples if selection in (sample.name, sample.test, sample.workload)]
    if not chosen:
        raise UsageError(f"{path}: no {selection!r} in it; it has {_names(samples)}")
    return chosen, True


def _names(samples: Sequence[TestSample]) -> str:
    shown = [f"{sample.name!r}" for sample in samples[:8]]
    return ", ".join(shown) + (f" and {len(samples) - 8} more" if len(samples) > 8 else "")


def _split(text: str) -> tuple[Path, str | None]:
    """At the first colon that ends a file's name: a file may have colons in it, and so may a test."""
    if os.path.exists(text):
        return Path(text), None
    parts = text.split(":")
    for length in range(1, len(parts)):
        path = ":".join(parts[:length])
        if path and os.path.isfile(path):
            return Path(path), ":".join(parts[length:])
    raise UsageError(f"{text}: no such file")


def _of_store(path: Path) -> list[TestSample]:
    with Store.open(path) as store:
        groups = grouped(store.series())
    if not groups and is_study(path):
        from cbench.screen.data.load_store import is_screen

        if is_screen(path):
            raise UsageError(
                f"{path}: the store of a screening experiment: `cbench screen analyze {path}` compares its treatments"
            )
        raise UsageError(f"{path}: the store of a study: `cbench order analyze {path}` compares its orders")
    if not groups:
        raise UsageError(f"{path}: no trials in it")
    return [_of_group(group) for group in groups]


def _of_group(group: Group) -> TestSample:
    host = group.series[0].run.host
    return TestSample(
        name=group.name,
        test=group.test,
        workload=group.series[0].workload,
        unit=group.unit,
        quantum=max(series.quantum for series in group.series),
        cpu=group.cpu,
        host=str(host.get("cpu") or ""),
        processes=tuple(tuple(series.values) for series in group.series),
        clean=tuple(tuple(each.value for each in series.trials if not each.polluted) for series in group.series),
        cut_short=sum(series.ended_ns is None for series in group.series),
        counter=group.counter,
        method=" or ".join(sorted({str(series.counter.get("method") or "") for series in group.series} - {""})),
    )


def _of_pyperf(path: Path) -> list[TestSample]:
    pyperf: Any = import_module("pyperf")
    try:
        with open(path, "rb") as file:
            start = file.read(1)
        if start not in (b"{", b"\x1f"):
            raise UsageError(f"{path}: neither a store of cbench nor a JSON file of pyperf")
        suite = pyperf.BenchmarkSuite.load(str(path))
        return [_of_benchmark(path, benchmark) for benchmark in suite]
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from None
    except (ValueError, KeyError, TypeError, AttributeError, EOFError) as error:
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
