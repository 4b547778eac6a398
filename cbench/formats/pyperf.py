"""Read a JSON file of pyperf, plain or compressed."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from cbench.formats.content import Content
from cbench.formats.json_value import DamagedError, JsonValue
from cbench.formats.reader import ResultReader, TestSample, plugin_interruptions
from cbench.machine.passport import Passport
from quiet import UsageError

_DAMAGE = ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, OSError

NAME = "cbench_name"
"""The metadata key under which `cbench export` stores, as JSON, a test's name that is not a single line."""
DISTURBANCES = ("quiet_preempted", "quiet_stolen_ms", "quiet_major_faults")
HOOK, INTERRUPTS = "quiet_", "quiet_interrupts"
"""HOOK is the prefix of the hook's metadata keys; the value of INTERRUPTS is JSON."""


class PyperfReader(ResultReader):
    """A benchmark is a test, and a run is a process. Runs that only calibrate have no values and are omitted."""

    name = "pyperf JSON"
    more = "pyperf's --processes {n}"

    def matches(self, content: Content) -> bool:
        document = content.json
        return document is not None and document.has("benchmarks", "version")

    def read(self, content: Content) -> tuple[TestSample, ...]:
        document = content.json
        assert document is not None
        try:
            return self._tests(content.path, content.text)
        except _DAMAGE as error:
            raise DamagedError(self._place(content.path, document), _said(error)) from None

    def _tests(self, path: Path, text: str) -> tuple[TestSample, ...]:
        pyperf: Any = import_module("pyperf")
        return tuple(_of_benchmark(path, benchmark, self.more) for benchmark in pyperf.BenchmarkSuite.loads(text))

    def _place(self, path: Path, document: JsonValue) -> str:
        """The place of the first damaged benchmark; "" if no single benchmark is damaged. Raises DamagedError if the
        exact place is known.
        """
        assert isinstance(document.value, dict)
        for each in document["benchmarks"].items():
            for run in each["runs"].items():
                if (values := run.get("values")) is not None:
                    values.numbers()
            try:
                self._tests(path, json.dumps({**document.value, "benchmarks": [each.value]}))
            except _DAMAGE:
                return each.place
        return ""


def _said(error: Exception) -> str:
    text = " ".join(str(error).split())[:200]
    return text if isinstance(error, ValueError) else f"pyperf cannot read it ({type(error).__name__}: {text})"


def _of_benchmark(path: Path, benchmark: Any, more: str) -> TestSample:
    """A benchmark as a sample. In the output of `cbench export`, the unit of whole numbers is in the metadata."""
    metadata = benchmark.get_metadata()
    name = str(json.loads(metadata[NAME])) if NAME in metadata else benchmark.get_name()
    unit = benchmark.get_unit()
    whole = unit == "integer"
    runs = [run for run in benchmark.get_runs() if run.values]
    processes = tuple(tuple(run.values) for run in runs)
    if not processes:
        raise UsageError(f"{path}: {name} has no values")
    begun = [str(run.get_metadata().get("date") or "") for run in runs]
    if not all(math.isfinite(value) for values in processes for value in values):
        raise UsageError(f"{path}: {name} has a value that is not finite")
    return TestSample(
        name=name,
        test=name,
        workload=str(metadata.get("cbench_workload", "")),
        unit=str(metadata.get("cbench_unit", unit)) if whole else unit,
        quantum=int(metadata.get("cbench_quantum", 1)) if whole else 1,
        cpu=None,
        host=" ".join(str(metadata.get("cpu_model_name", "")).split()),
        processes=processes,
        clean=tuple(() if _disturbed(run.get_metadata()) else tuple(run.values) for run in runs),
        counter=str(metadata.get("cbench_counter", "")) if whole else "",
        method=str(metadata.get("cbench_method", "")) if whole else "",
        passport=Passport.parse({"cpu": metadata.get("cpu_model_name"), "kernel": _kernel(metadata)}),
        begun=tuple(round(datetime.fromisoformat(date).timestamp() * 1e9) for date in begun) if all(begun) else (),
        more_processes=more,
        interruptions=sum((_interruptions(run.get_metadata()) for run in runs), Counter[str]()),
    )


def _disturbed(metadata: Any) -> bool:
    """Whether the hook `quiet` of cbench/plugins counted any disturbance of a run."""
    return any(metadata.get(name) for name in DISTURBANCES)


def _interruptions(metadata: Any) -> Counter[str]:
    """The interruptions of a run by cause, as counted by the hook."""
    counts = {name.removeprefix(HOOK): value for name, value in metadata.items() if name.startswith(HOOK)}
    return plugin_interruptions(counts, json.loads(metadata.get(INTERRUPTS, "{}")))


def _kernel(metadata: Any) -> str:
    """The kernel release from a platform string such as "Linux-6.1.0-18-amd64-x86_64-with-glibc2.36"; "" for other
    systems.
    """
    found = re.match(r"Linux-(.+?)-(x86_64|aarch64|[^-\d][^-]*)(-with-|$)", str(metadata.get("platform", "")))
    return found[1] if found else ""
