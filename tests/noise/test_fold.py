"""Without tracing: what is proved by phase, by the detector's own counters and by counting."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import fold
from quiet.noise.attribute import FIRMWARE, HOST, HYPERVISOR, STALL, STALL_NS, UNKNOWN, Account, Cause, Gap
from quiet.noise.fold import FAULTED, LOOKED, OTHER, OWN, RATES, SWITCHED, TASK, TICK, Counts
from quiet.noise.frames import COUNTED
from tests.noise.making import CLOCK, SECOND

LOOK = 4_000


def folded(gaps: list[Gap], timer: int = 0, others: int = 0, virtual: bool = False) -> Account:
    return fold.account(sorted(gaps), CLOCK, Counts(timer, others), 1.0, LOOK, virtual)


def ticks(rate: int, length: int = 5_000, phase: float = 0.3) -> list[Gap]:
    step = SECOND // rate
    return [Gap(int(phase * step) + number * step, length, LOOKED) for number in range(rate)]


def counted(done: Account) -> dict[Cause, int]:
    return {cause: total.count for cause, total in done.totals.items()}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.999])
def test_a_regular_tick_is_found_at_every_rate_and_phase(rate: int, phase: float) -> None:
    assert counted(folded(ticks(rate, phase=phase), timer=rate)) == {TICK: rate}


@pytest.mark.parametrize("rate", RATES)
def test_other_gaps_among_the_ticks_are_not_taken_for_it(rate: int) -> None:
    draw = random.Random(rate)
    others = [Gap(draw.randrange(SECOND), 2_000) for _ in range(20)]
    found = counted(folded([*ticks(rate), *others], timer=rate, others=20))
    assert found[TICK] == pytest.approx(rate, rel=0.03)
    assert found[OTHER] == pytest.approx(20, abs=0.03 * rate + 1)


def test_without_timer_interrupts_there_is_no_tick() -> None:
    found = counted(folded(ticks(250), timer=0))
    assert TICK not in found
    assert found == {Cause(HOST, FIRMWARE): 250}


def test_scattered_gaps_are_no_tick() -> None:
    draw = random.Random(1)
    gaps = [Gap(draw.randrange(SECOND), 5_000) for _ in range(250)]
    assert TICK not in counted(folded(gaps, timer=250))


def test_a_switch_that_the_detector_saw_of_itself_is_another_task() -> None:
    found = counted(folded([Gap(1_000, 50_000, LOOKED | SWITCHED), Gap(90_000, 50_000, LOOKED | FAULTED)]))
    assert found == {TASK: 1, OWN: 1}


def test_a_gap_below_a_microsecond_is_the_processors() -> None:
    assert [cause.kind for cause in counted(folded([Gap(1_000, STALL_NS - 1)], others=5))] == [STALL]


def test_as_many_gaps_as_interrupts_were_counted_are_interrupts_and_the_longest_left_are_not() -> None:
    gaps = [Gap(number * 7_000_003, 2_000) for number in range(1, 4)] + [Gap(50_000_000, 90_000, LOOKED)]
    done = folded(gaps, others=3, virtual=True)
    assert counted(done) == {OTHER: 3, Cause(HOST, HYPERVISOR): 1}
    assert done.totals[Cause(HOST, HYPERVISOR)].longest == 90_000


def test_a_gap_too_short_for_the_detector_to_have_looked_stays_without_a_cause() -> None:
    assert [cause.kind for cause in counted(folded([Gap(1_000, LOOK - 1)]))] == [UNKNOWN]


def test_an_interrupt_that_was_only_counted_says_so() -> None:
    assert OTHER.kind == COUNTED


FLAGS = st.sampled_from([0, LOOKED, LOOKED | SWITCHED, LOOKED | FAULTED])
GAPS = st.lists(
    st.builds(Gap, st.integers(0, SECOND), st.integers(1, 1_000_000), FLAGS), max_size=40, unique_by=lambda g: g.begin
)


@given(GAPS, st.integers(0, 1000), st.integers(0, 50), st.booleans())
def test_every_gap_has_one_cause_and_all_of_its_time(gaps: list[Gap], timer: int, others: int, virtual: bool) -> None:
    done = folded(gaps, timer, others, virtual)
    assert [each.gap for each in done.explained] == sorted(gaps)
    assert all(len(each.parts) == 1 and each.parts[0][1] == each.gap.length for each in done.explained)
    assert sum(total.count for total in done.totals.values()) == len(gaps)
    assert sum(total.total for total in done.totals.values()) == sum(gap.length for gap in gaps)


@given(GAPS, st.integers(0, 1000), st.integers(0, 50))
def test_no_more_interrupts_are_named_than_the_kernel_counted(gaps: list[Gap], timer: int, others: int) -> None:
    found = counted(folded(gaps, timer, others))
    assert found.get(OTHER, 0) <= timer + others
    assert found.get(TICK, 0) <= timer * 1.05 + 2
