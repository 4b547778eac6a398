"""The speed of a core from chains in a row, on simulated cores."""

from __future__ import annotations

from statistics import median

import pytest

from quiet.noise import chains
from tests.cbench.stats.cores import ALONE, BESIDE, EDGE, STEP, Core


def test_successive_chains_give_the_frequency_and_the_share_of_core_sharing() -> None:
    core = Core(shared=lambda now: int(now // 5e6) % 2 > 0)
    timed = []
    for _ in range(600):
        beside = core.shared(core.now)
        timed.append(chains.Chain(core.take(32_000), core.take(32_000 * (BESIDE if beside else ALONE))))
    found = chains.speed(timed, 32_000, STEP, EDGE, "x86_64")
    assert median(found.rates) == pytest.approx(0.754, rel=1e-3)
    assert found.shared is not None
    assert 0.35 < found.shared < 0.65


def test_an_interruption_of_a_wide_chain_is_no_other_thread() -> None:
    core = Core(interrupted=0)
    timed = [
        chains.Chain(core.take(32_000), core.take(32_000 * (4 * ALONE if at % 9 == 0 else ALONE))) for at in range(200)
    ]
    assert chains.speed(timed, 32_000, STEP, EDGE, "x86_64").shared == 0


def test_no_chains_that_agree_give_no_frequency_but_a_reason() -> None:
    timed = [chains.Chain(20_000 + 1_000 * number, 6_000) for number in range(50)]
    found = chains.speed(timed, 32_000, STEP, EDGE, "x86_64")
    assert found.rates == ()
    assert "no chains agree" in found.why


def test_the_edge_of_a_chain_is_found_through_the_steps_of_the_clock_and_interruptions() -> None:
    core = Core(interrupted=0.05)
    short, double = [core.take(160) for _ in range(4000)], [core.take(320) for _ in range(4000)]
    assert chains.chain_edge(short, double) == pytest.approx(EDGE, abs=3)


def test_a_golden_cove_core_is_not_treated_as_shared() -> None:
    core = Core(interrupted=0)
    timed = [chains.Chain(core.take(32_000), core.take(32_000 * 0.289)) for _ in range(200)]
    found = chains.speed(timed, 32_000, STEP, EDGE, "x86_64")
    assert (found.shared, found.why) == (0, "")
    beside = [chains.Chain(core.take(32_000), core.take(32_000 * 0.36)) for _ in range(200)]
    assert chains.speed(beside, 32_000, STEP, EDGE, "x86_64").why.startswith(chains.ALWAYS)
