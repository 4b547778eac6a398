"""Load the function that a trial times, and the function's state, from the C registry or the user's library."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from cbench._cbench import ffi, lib
from quiet import UsageError


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded workload. `run`, `state`, `destroy`: pointers for the C code; `region`: address and size in bytes
    of memory that may be locked, None if there is none. On exit, this context manager destroys the state.
    """

    run: Any
    state: Any = ffi.NULL
    region: tuple[int, int] | None = None
    destroy: Any = ffi.NULL

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.destroy != ffi.NULL:
            self.destroy(self.state)


def user_code(library: str, function: str) -> Loaded:
    """The user's function, which has no state. Raises UsageError if it cannot be loaded."""
    try:
        symbol = getattr(ctypes.CDLL(library), function)
    except OSError as error:
        raise UsageError(f"cannot load it: {error}") from None
    except AttributeError:
        raise UsageError(f"it has no function {function!r}; define this function, without `static`") from None
    return Loaded(ffi.cast("cb_run_fn", ctypes.cast(symbol, ctypes.c_void_p).value))


def builtin(name: str, params: Mapping[str, int]) -> Loaded:
    """A workload of workloads.h with its state. `params`: in the order of the workload's parameters. Raises UsageError
    if the state cannot be created.
    """
    pointer = ffi.new("const cb_workload **")
    if lib.cb_workload_find(name.encode(), pointer):
        raise UsageError(f"no workload {name!r} in the C code: rebuild it with `make setup`")
    workload = pointer[0]
    if workload.create == ffi.NULL:
        return Loaded(workload.run)
    state = ffi.new("void **")
    failure = workload.create(list(params.values()), len(params), state)
    if failure:
        settings = " ".join(f"{key}={value:,}" for key, value in params.items())
        raise UsageError(f"cannot create its state ({settings}): {os.strerror(-failure)}")
    buffer = ffi.cast("cb_buffer *", state[0])
    region = (int(ffi.cast("uintptr_t", buffer.start)), int(buffer.len)) if workload.locked else None
    return Loaded(workload.run, state[0], region, workload.destroy)
