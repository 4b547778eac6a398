"""The results of a boot are kept for all tests that request them, even if it failed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def once(function: Callable[P, T]) -> Callable[P, T]:
    """Like functools.cache, but errors are kept too: no boot that failed is made again by the next test."""
    made: dict[Hashable, tuple[T | None, BaseException | None]] = {}

    @functools.wraps(function)
    def kept(*args: P.args, **options: P.kwargs) -> T:
        key = args, tuple(sorted(options.items()))
        if key not in made:
            try:
                made[key] = function(*args, **options), None
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                made[key] = None, error
        value, failed = made[key]
        if failed is not None:
            raise failed
        return value  # type: ignore[return-value]

    return kept
