"""Set the CPU affinity and address randomization that child processes inherit."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from cbench.machine.process import addresses
from quiet import Refused, format_cpus, join


@contextlib.contextmanager
def inherited(cpus: frozenset[int] | None, aslr: bool | None, partition: bool = False) -> Iterator[None]:
    """A context in which new child processes get this CPU affinity and ASLR setting (None: inherit).

    Both settings are read back before anything is started (sched_getaffinity(2), personality(2)). `partition`: whether
    an applied profile has isolated the CPUs, so that only their own cgroup may use them. Raises Refused if a setting
    does not take effect.
    """
    before = os.sched_getaffinity(0)
    try:
        if cpus is not None:
            if partition:
                join(cpus)
            _place(cpus)
        if aslr is None:
            yield
        else:
            with addresses(fixed=not aslr) as done:
                if not done:
                    how = "random" if aslr else "fixed"
                    raise Refused(f"addresses {how}: personality(2) is forbidden here, as in some containers")
                yield
    finally:
        if cpus is not None:
            if partition:
                join(frozenset(before))
            with contextlib.suppress(OSError):  # the cgroup may have been removed
                os.sched_setaffinity(0, before)


def _place(cpus: frozenset[int]) -> None:
    named = format_cpus(cpus)
    try:
        os.sched_setaffinity(0, cpus)
    except OSError as error:
        raise Refused(f"CPUs {named}: {error.strerror}; this process may use only CPUs {_allowed()}") from None
    if (found := os.sched_getaffinity(0)) != cpus:  # the kernel may accept only part of the request
        raise Refused(f"CPUs {named}: this process may use only CPUs {format_cpus(frozenset(found))}")


def _allowed() -> str:
    return format_cpus(frozenset(os.sched_getaffinity(0)))
