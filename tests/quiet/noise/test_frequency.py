"""The frequency is measured, or reported as not known."""

from __future__ import annotations

import errno
import os
import time

import pytest

from quiet.host.host import Host
from quiet.noise import clock, frequency
from quiet.noise.frequency import FrequencyCounter


def test_the_frequency_of_a_busy_cpu_is_plausible_or_unknown() -> None:
    cpu = min(os.sched_getaffinity(0))
    counter = FrequencyCounter(Host(), frozenset({cpu}), os.getpid())
    counter.start()
    end = time.process_time() + 0.02
    while time.process_time() < end:
        pass
    counter.stop()
    measured = counter.result()
    assert measured.source
    if measured.mean_hz is not None and measured.min_hz is not None and measured.max_hz is not None:
        assert 1e8 < measured.min_hz <= measured.mean_hz * 1.0001
        assert measured.mean_hz <= measured.max_hz * 1.0001 < 1e10


@pytest.mark.parametrize(("reason", "why"), [(errno.ENOENT, "here"), (errno.EACCES, "(kernel.perf_event_paranoid)")])
def test_a_missing_counter_is_blamed_on_permissions_only_if_the_kernel_refused_one(
    reason: int, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(*_: object, **__: object) -> None:
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(clock, "name", lambda: "tsc")
    monkeypatch.setattr(frequency, "PerfCounter", absent)
    counter = FrequencyCounter(Host(), frozenset({0}))
    counter.start()
    assert counter.result().source.startswith("no cycle counter here")
    assert counter.result().source.endswith(why)


def test_a_counter_that_never_started_to_count_gives_nothing() -> None:
    counter = FrequencyCounter(Host(), frozenset())
    counter.start()
    counter.stop()
    assert counter.result().mean_hz is None
