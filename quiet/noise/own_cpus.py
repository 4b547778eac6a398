"""Keep this process off the tested CPUs, and report if that is not possible."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from quiet.cpulist import CpuSet


def self_inflicted(cpus: CpuSet, online: CpuSet, verb: str) -> list[str]:
    """The limitation of the results if this command has to run on the tested CPUs; empty if it does not.

    `verb`: the effect on these CPUs, such as "interrupt".
    """
    if cpus >= online:
        return [f"all CPUs are measured, so this command and the rest of the system {verb} them too"]
    if cpus >= os.sched_getaffinity(0):
        return [f"this command may use no other CPU, so it {verb}s the measured ones too"]
    return []


@contextlib.contextmanager
def elsewhere(cpus: CpuSet) -> Iterator[None]:
    """Keep this process off the tested CPUs inside the block, if it may use others."""
    before = os.sched_getaffinity(0)
    if before - cpus:
        os.sched_setaffinity(0, before - cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
