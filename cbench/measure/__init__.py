"""Measure a workload: options, the worker process and its runner. `cbench.measure(...)` is in cbench.run.api."""

from __future__ import annotations

import sys
from importlib import import_module


class _MeasurePackage(type(sys)):  # type: ignore[misc]
    """A callable package: cbench.measure() is also a function of the public API."""

    def __call__(self, *arguments: object, **options: object) -> object:
        result: object = import_module("cbench.run.api").measure(*arguments, **options)
        return result


sys.modules[__name__].__class__ = _MeasurePackage
