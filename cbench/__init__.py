"""cbench: measure C code with cycle accuracy, with the provenance of every trial.

These names are the public API (docs/api.md). Each is imported on first use, so `import cbench` itself loads nothing.
`cbench.measure` and `cbench.compare` are packages that can also be called as functions.
"""

from __future__ import annotations

TYPE_CHECKING = False  # the name from typing, which takes longer to load than this whole module
if TYPE_CHECKING:
    from cbench.compare.result import compare as compare
    from cbench.formats.reader import TestSample as TestSample
    from cbench.machine.describe import HostFacts as HostFacts
    from cbench.measure.result import CleanTrials as CleanTrials
    from cbench.measure.result import RunResult as RunResult
    from cbench.measure.result import WorkloadResult as WorkloadResult
    from cbench.model import Counter as Counter
    from cbench.model import Layout as Layout
    from cbench.model import Parameter as Parameter
    from cbench.model import Trial as Trial
    from cbench.model import TrialCause as TrialCause
    from cbench.model import Workload as Workload
    from cbench.results import to_json as to_json
    from cbench.run.api import list_workloads as list_workloads
    from cbench.run.api import measure as measure
    from cbench.run.api import read_results as read_results
    from cbench.store.records import Run as Run
    from cbench.store.records import StoredSeries as StoredSeries
    from cbench.study.model import Study as Study
    from quiet import QuietError as QuietError
    from quiet import Refused as Refused
    from quiet import UsageError as UsageError

_MODULES = {
    "cbench.run.api": ("list_workloads", "read_results"),
    "cbench.results": ("to_json",),
    "cbench.formats.reader": ("TestSample",),
    "cbench.machine.describe": ("HostFacts",),
    "cbench.measure.result": ("CleanTrials", "RunResult", "WorkloadResult"),
    "cbench.model": ("TrialCause", "Counter", "Layout", "Parameter", "Trial", "Workload"),
    "cbench.store.records": ("Run", "StoredSeries"),
    "cbench.study.model": ("Study",),
    "quiet": ("QuietError", "Refused", "UsageError"),
}
_CALLED = ("measure", "compare")
_WHERE = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*_CALLED, *_WHERE]  # noqa: PLE0604 - they are strings


def __getattr__(name: str) -> object:
    if name not in _WHERE and name not in _CALLED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"cbench.{name}") if name in _CALLED else getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
