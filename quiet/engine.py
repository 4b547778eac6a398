"""The one way in which values get written: in passes, until all is as wanted or a pass makes no progress.

Apply and restore both use it. Passes make the order of coupled settings (frequency limits, energy preference and
governor, CPUs that have to come online first) a matter of what the kernel accepts, not of our knowing every driver.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quiet import targets, values
from quiet.host import Host

MAX_PASSES = 12


@dataclass(slots=True)
class Write:
    """A target and the value it is to have (None: absent, as before it was made)."""

    target: str
    wanted: str | None
    kind: str
    clamps: bool = False


@dataclass(slots=True)
class Failure:
    """A write that did not stick: the kernel's errno (0: it accepted, and shows something else) and words."""

    write: Write
    errno: int
    text: str


Before = Callable[[Write], None]
After = Callable[[Write, str | None], None]


def settle(host: Host, writes: Iterable[Write], before: Before, after: After) -> list[Failure]:
    """Write until nothing differs or nothing more can be done; what is left is returned.

    `before` is called ahead of a write (the journal's intent), `after` with what was read back. A value once reached
    is looked at again in each pass, because a later write may have changed it.
    """
    writes = list(writes)
    failures: dict[str, Failure] = {}
    last: list[str | None] | None = None
    for _ in range(MAX_PASSES):
        failures = {}
        wrote = False
        for number, write in enumerate(writes):
            # as long as nothing is written again, the look after the last pass still holds
            if _holds(write, targets.get(host, write.target) if last is None or wrote else last[number]):
                continue
            wrote = True
            failure = _one(host, write, before, after)
            if failure is not None:
                failures[write.target] = failure
        now = last if last is not None and not wrote else [targets.get(host, write.target) for write in writes]
        if not wrote or now == last:
            break
        last = now
    for write, found in zip(writes, now, strict=True):
        if not (write.clamps or write.target in failures or _holds(write, found)):
            failures[write.target] = _different(write, found)
    return list(failures.values())


def _holds(write: Write, found: str | None) -> bool:
    return values.same(write.kind, found, write.wanted) or (found is None and targets.ends(write.target))


def _different(write: Write, found: str | None) -> Failure:
    return Failure(write, 0, f"the kernel shows '{found}'" if found is not None else "it is not there afterwards")


def _one(host: Host, write: Write, before: Before, after: After) -> Failure | None:
    before(write)
    try:
        targets.put(host, write.target, write.wanted)
    except OSError as error:
        number = error.errno or errno.EIO
        if number == errno.ESRCH and targets.ends(write.target):
            return None
        return Failure(write, number, error.strerror or os.strerror(number))
    found = targets.get(host, write.target)
    after(write, found)
    return None if write.clamps or _holds(write, found) else _different(write, found)
