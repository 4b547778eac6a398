"""Chains of additions on this machine, whatever else it runs."""

from __future__ import annotations

import os
import platform
from statistics import median

import pytest

from quiet.errors import UsageError
from quiet.noise.core_frequency import chain_facts, core_frequency, time_chains

HERE = min(os.sched_getaffinity(0))


def lowest(length: int, chains: int = 300) -> tuple[int, int]:
    timed = time_chains(length, chains)
    return min(each.narrow for each in timed), min(each.wide for each in timed)


def test_a_narrow_chain_takes_as_long_as_it_has_additions() -> None:
    # Of each pair the ratio: within a fraction of a millisecond a core hardly ever changes its frequency.
    ratios = []
    for _ in range(101):
        (narrow, _), (twice, _) = (lowest(length, 3) for length in (16_000, 32_000))
        ratios.append(twice / narrow)
    assert 1.9 < median(ratios) < 2.1


@pytest.mark.skipif(platform.machine() != "x86_64", reason="some Arm cores execute two additions in a cycle")
def test_a_wide_chain_is_faster_than_a_narrow_one() -> None:
    narrow, wide = lowest(16_000)
    assert wide < 0.8 * narrow


def test_the_edge_of_a_chain_is_that_of_two_reads_of_the_clock() -> None:
    facts = chain_facts()
    assert 0 <= facts.edge < 10_000
    assert facts.step >= 1


def test_the_frequency_of_a_core_comes_with_the_share_of_chains_that_shared_it_or_with_a_reason() -> None:
    before = os.sched_getaffinity(0)
    found = core_frequency(HERE, 0.05)
    assert os.sched_getaffinity(0) == before
    assert found.cpu == HERE
    assert found.chains >= 200
    assert found.ticks_per_second > 1e6
    if found.hz is None:
        assert found.why
    else:
        assert found.low_hz is not None
        assert found.high_hz is not None
        assert 1e8 < found.low_hz <= found.hz <= found.high_hz < 1e10
        assert found.ticks_per_cycle == pytest.approx(found.ticks_per_second / found.hz)
        assert found.shared is not None


def test_a_missing_cpu_is_an_error() -> None:
    with pytest.raises(UsageError, match="CPU 100000 is not online"):
        core_frequency(100_000, 0.01)
