"""Provide the turn on the isolated CPUs to other measuring programs, such as `cbench run`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from quiet.cpulist import CpuSet
from quiet.host import queue
from quiet.host.host import Host
from quiet.settings.journal import isolated_cpus


@contextlib.contextmanager
def isolated_turn(cpus: CpuSet, command: str, waiting: Callable[[str], None]) -> Iterator[None]:
    """Wait until no `quiet run` or `quiet lock` is on the isolated CPUs, and hold the turn inside the block.

    Does not wait if none of `cpus` is isolated, if this process belongs to such a run, or if root has not created the
    queue. `waiting` is called with a line whenever the runs ahead change.
    """
    host = Host()
    if not (cpus & isolated_cpus(host)) or not host.exists(queue.QUEUE):
        yield
        return

    def wait(line: str, seconds: float) -> bool:
        if line:
            waiting(line)
        time.sleep(seconds)
        return True

    with queue.queued(host, command, wait):
        yield
