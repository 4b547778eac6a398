"""Write values in at most 12 passes, until all targets have their wanted values or a pass makes no progress.

Apply and restore both use this module; only restore.py also writes targets directly (the CPUs of some tasks). Repeated
passes let the kernel determine the order of coupled settings (frequency limits, energy preference and governor, CPUs
that must be online first), so no knowledge of individual drivers is needed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from quiet.host.host import Host
from quiet.targets import registry, value_types

MAX_PASSES = 12


@dataclass(slots=True)
class Write:
    """A target and its wanted value (None: make it absent, as it was before quiet created it).

    `kind`: the comparison of values; `clamps`: any value that the kernel stores instead is accepted.
    """

    target: str
    wanted: str | None
    kind: str
    clamps: bool = False


@dataclass(slots=True)
class Failure:
    """A write that did not take effect.

    `errno`: the kernel's error number, 0 if the kernel accepted the write but reports another value; `text`: the
    reason.
    """

    write: Write
    errno: int
    text: str


Before = Callable[[Write], None]
After = Callable[[Write, str | None], None]


def settle(host: Host, writes: Iterable[Write], before: Before, after: After) -> list[Failure]:
    """Write until every target has its wanted value, a pass makes no progress, or MAX_PASSES passes are done.

    Returns the failures.

    `before` is called ahead of a write, to record it in the journal; `after` is called with the value read back. Each
    pass also checks values that were reached earlier, because a later write may have changed them.
    """
    writes = list(writes)
    failures: dict[str, Failure] = {}
    last: list[str | None] | None = None
    for _ in range(MAX_PASSES):
        failures = {}
        wrote = False
        # without further writes, the check of the last pass remains valid
        for kind, group in groupby(enumerate(writes), lambda item: registry.shared_put(item[1].target)):
            due = (w for n, w in group if not _holds(w, _look(host, w) if last is None or wrote else last[n]))
            for write, failure in (_several if kind else _each)(host, due, before, after):
                wrote = True
                if failure is not None:
                    failures[write.target] = failure
        now = last if last is not None and not wrote else [_look(host, write) for write in writes]
        if not wrote or now == last:
            break
        last = now
    for write, found in zip(writes, now, strict=True):
        if not (write.clamps or write.target in failures or _holds(write, found)):
            failures[write.target] = _different(write, found)
    return list(failures.values())


def _look(host: Host, write: Write) -> str | None:
    return registry.get(host, write.target)


def _holds(write: Write, found: str | None) -> bool:
    return value_types.same(write.kind, found, write.wanted) or (found is None and registry.ends(write.target))


def _different(write: Write, found: str | None) -> Failure:
    return Failure(write, 0, f"the kernel reports '{found}'" if found is not None else "it does not exist afterwards")


def _each(host: Host, due: Iterable[Write], before: Before, after: After) -> Iterator[tuple[Write, Failure | None]]:
    for write in due:
        yield write, _one(host, write, before, after)


def _several(host: Host, due: Iterable[Write], before: Before, after: After) -> Iterator[tuple[Write, Failure | None]]:
    """Yield each write with its failure, if any.

    All values are written in one call; if the call fails, each value is written separately, to find the failing one.
    """
    due = list(due)
    if len(due) < 2:
        yield from _each(host, due, before, after)
        return
    for write in due:
        before(write)
    try:
        registry.put_many(host, [(write.target, write.wanted) for write in due])
    except OSError:
        for write in due:
            written = _holds(write, registry.get(host, write.target))
            yield write, _found(host, write, after) if written else _one(host, write, before, after)
    else:
        yield from ((write, _found(host, write, after)) for write in due)


def _one(host: Host, write: Write, before: Before, after: After) -> Failure | None:
    before(write)
    try:
        registry.put(host, write.target, write.wanted)
    except OSError as error:
        number = error.errno or errno.EIO
        if number == errno.ESRCH and registry.ends(write.target):
            return None
        return Failure(write, number, error.strerror or os.strerror(number))
    return _found(host, write, after)


def _found(host: Host, write: Write, after: After) -> Failure | None:
    found = registry.get(host, write.target)
    after(write, found)
    return None if write.clamps or _holds(write, found) else _different(write, found)
