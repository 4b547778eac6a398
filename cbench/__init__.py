"""cbench: measure C code with cycle accuracy, with the provenance of every trial.

These names are the public API (docs/api.md). Each is imported when it is first used: `import cbench` loads nothing.
`cbench.measure`, `cbench.compare` and `cbench.to_json` are modules that can be called.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # as typing has it, which takes longer to load than all of this
if TYPE_CHECKING:
    from cbench.api import compare as compare
    from cbench.api import list_workloads as list_workloads
    from cbench.api import measure as measure
    from cbench.api import read_results as read_results
    from cbench.api import to_json as to_json
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
    from cbench.store.records import Run as Run
    from cbench.store.records import StoredSeries as StoredSeries
    from cbench.study.model import Study as Study
    from quiet.errors import QuietError as QuietError
    from quiet.errors import Refused as Refused
    from quiet.errors import UsageError as UsageError

_MODULES = {
    "cbench.api": ("list_workloads", "read_results"),
    "cbench.machine.describe": ("HostFacts",),
    "cbench.measure.result": ("CleanTrials", "RunResult", "WorkloadResult"),
    "cbench.model": ("TrialCause", "Counter", "Layout", "Parameter", "Trial", "Workload"),
    "cbench.store.records": ("Run", "StoredSeries"),
    "cbench.study.model": ("Study",),
    "quiet.errors": ("QuietError", "Refused", "UsageError"),
}
_CALLED = ("measure", "compare", "to_json")
_WHERE = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [*_CALLED, *_WHERE]  # noqa: PLE0604 - all of them are texts


def __getattr__(name: str) -> object:
    if name not in _WHERE and name not in _CALLED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return import_module(f"cbench.{name}") if name in _CALLED else getattr(import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)


class _CalledModule(type(sys)):  # type: ignore[misc]
    """A module that is also a function of the API: cbench.api has the function of its name."""

    def __call__(self, *arguments: object, **options: object) -> object:
        from cbench import api

        return getattr(api, self.__name__.rpartition(".")[2])(*arguments, **options)


class _Package(type(sys)):  # type: ignore[misc]
    """This package: a module in it that is imported, by whoever, becomes an attribute here, and can then be called."""

    def __setattr__(self, name: str, value: object) -> None:
        if name in _CALLED and type(value) is type(sys):
            value.__class__ = _CalledModule
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
