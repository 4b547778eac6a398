"""The command `cbench compare`. The function `cbench.compare(...)` is in result.py."""

from __future__ import annotations

import sys
from importlib import import_module


class _ComparePackage(type(sys)):  # type: ignore[misc]
    """A callable package: cbench.compare() is also a function of the public API."""

    def __call__(self, *arguments: object, **options: object) -> object:
        made: object = import_module("cbench.compare.result").compare(*arguments, **options)
        return made


sys.modules[__name__].__class__ = _ComparePackage
