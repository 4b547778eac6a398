"""Apply one function to many numbers, with one process per CPU but at most MOST processes.

Processes are forked, so that they share the arrays that the function uses; their results are pickled into shared
memory. If a process fails, this process repeats its part, so that an error of the function is raised here.
"""

from __future__ import annotations

import gc
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")
MOST = 8


def every(function: Callable[[int], T], count: int) -> list[T]:
    """The list of the results function(0), function(1), ..., function(count - 1)."""
    parts = min(len(os.sched_getaffinity(0)), MOST, count)
    bounds = [count * number // max(parts, 1) for number in range(parts + 1)]
    children: dict[int, tuple[int, int]] = {}  # part -> (process, memory of its results)
    try:
        for part in range(1, parts):
            with suppress(OSError):  # no processes or memory left: this process computes the part itself
                children[part] = _begin(function, range(bounds[part], bounds[part + 1]))
        results: list[T] = []
        for part in range(parts):
            found: list[T] | None = None
            if part in children:
                found = _end(*children[part])
                del children[part]
            results += (
                [function(number) for number in range(bounds[part], bounds[part + 1])] if found is None else found
            )
        return results
    finally:
        for process, memory in children.values():
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
                os.waitpid(process, 0)
                os.close(memory)


def _begin(function: Callable[[int], T], numbers: range) -> tuple[int, int]:
    """Start a process for these numbers; returns its id and the memory for its results. Raises OSError if that
    fails.
    """
    memory = os.memfd_create("results")
    try:
        with warnings.catch_warnings():  # pyarrow's threads are not needed in the new process
            warnings.simplefilter("ignore", DeprecationWarning)
            process = os.fork()
    except OSError:
        os.close(memory)
        raise
    if process:
        return process, memory
    status = 1
    try:
        import pickle

        gc.disable()  # a collection would copy the shared data
        with open(memory, "wb") as file:
            pickle.dump([function(number) for number in numbers], file, pickle.HIGHEST_PROTOCOL)
        status = 0
    finally:
        os._exit(status)


def _end(process: int, memory: int) -> list[T] | None:
    """Wait for the process to end and return its results; None if it failed."""
    import pickle

    _, status = os.waitpid(process, 0)
    with open(memory, "rb") as file:
        file.seek(0)
        found: list[T] | None = None if status else pickle.load(file)  # noqa: S301 - written by this program
    return found
