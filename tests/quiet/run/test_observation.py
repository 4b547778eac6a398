"""The observation of a run, as the helper sends it to the front."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from quiet.host.host import Host
from quiet.run.observation import RunObserver
from quiet.run.protocol import CommandDone, RunEnded


@pytest.mark.slow
def test_interruptions_that_are_only_counted_are_not_part_of_the_lost_time() -> None:
    command = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        cpus = frozenset(os.sched_getaffinity(0))
        observer = RunObserver(Host(), cpus, command.pid, "", frozenset(), trace=False)
        time.sleep(1)
        done = CommandDone(0, cpu_ns=3_600_000_000_000)
        observer.stop(done)
    finally:
        command.kill()
        command.wait()
    ended = observer.report(RunEnded(True, True, 0, ()), done)
    assert 0 < ended.unmeasured <= ended.interruptions, ended  # ticks have no length
    assert ended.observed_ns == done.cpu_ns  # as the share in the report is of the CPU time, where that is longer
