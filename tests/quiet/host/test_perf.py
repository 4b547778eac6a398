"""Counters of the kernel: a real one counts, or the kernel says why not."""

from __future__ import annotations

import os
import time

import pytest

from quiet.host.perf import SOFTWARE, PerfCounter

TASK_CLOCK = 1


def test_a_counter_of_a_task_counts_its_time() -> None:
    try:
        counter = PerfCounter(SOFTWARE, TASK_CLOCK, pid=os.getpid())
    except OSError as error:
        pytest.skip(f"NOT RUN: perf_event_open is not permitted here: {error.strerror}")
    with counter:
        before = counter.read()
        end = time.process_time() + 0.01
        while time.process_time() < end:
            pass
        assert counter.read() - before > 1_000_000


def test_an_event_that_no_kernel_has_is_an_error() -> None:
    with pytest.raises(OSError, match=r".+"):
        PerfCounter(SOFTWARE, 1 << 40, pid=os.getpid())
