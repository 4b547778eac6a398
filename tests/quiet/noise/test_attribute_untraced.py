"""Without tracing: attribution by phase, by the detector's own counters and by counting."""

from __future__ import annotations

import random
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import attribute_untraced, clock
from quiet.noise.attribute import HOST, HYPERVISOR, OUTSIDE, STALL, STALL_NS, UNKNOWN, Account, Cause, Gap
from quiet.noise.attribute_untraced import (
    BIN_NS,
    CHEAPEST,
    FAULTED,
    LEAST,
    LOOKED,
    OTHER,
    OWN,
    PERHAPS,
    SHORT,
    SWITCHED,
    TASK,
    TICK,
    CountedEvidence,
    in_phase,
)
from quiet.noise.call_nesting import COUNTED
from tests.quiet.noise.making import CLOCK, SECOND

LOOK = 4_000
RATES = (100, 250, 300, 1000)  # what CONFIG_HZ can be


def folded(
    gaps: list[Gap],
    timer: int = 0,
    others: int = 0,
    virtual: bool = False,
    rate: int = 250,
    faults: int = 0,
    interruption: float = 0,
) -> Account:
    known = CountedEvidence(timer, others, faults, SECOND // rate, LOOK, interruption, virtual)
    return attribute_untraced.account(sorted(gaps), CLOCK, known)


def ticks(rate: int, length: int = 5_000, phase: float = 0.3) -> list[Gap]:
    step = SECOND // rate
    return [Gap(int(phase * step) + number * step, length, LOOKED) for number in range(rate)]


def counted(done: Account) -> dict[Cause, int]:
    return {cause: total.count for cause, total in done.totals.items()}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("phase", [0.0, 0.3, 0.999])
def test_a_regular_tick_is_found_at_every_rate_and_phase(rate: int, phase: float) -> None:
    assert counted(folded(ticks(rate, phase=phase), timer=rate, rate=rate)) == {TICK: rate}


@pytest.mark.slow
@given(
    st.sampled_from(RATES),
    st.one_of(st.floats(0, 1), st.floats(0.9999, 1)),
    st.lists(st.integers(0, 1_300), min_size=20, max_size=60),
)
def test_a_tick_that_comes_a_microsecond_early_or_late_is_found_at_every_phase(
    rate: int, phase: float, late: list[int]
) -> None:
    step = SECOND // rate
    gaps = [Gap(int(phase * step) + number * step + each, 5_000) for number, each in enumerate(late)]
    assert in_phase(gaps, CLOCK, step) == list(range(len(gaps)))


@pytest.mark.parametrize("rate", RATES)
def test_a_tick_around_the_start_of_its_period_is_not_split(rate: int) -> None:
    step = SECOND // rate
    first = 10 * step - CLOCK.first.monotonic_ns % step
    gaps = [Gap(first + number * step + (-500, 500)[number % 2], 5_000) for number in range(50)]
    assert in_phase(gaps, CLOCK, step) == list(range(50))


@pytest.mark.parametrize("rate", RATES)
def test_other_gaps_among_the_ticks_are_not_taken_for_it(rate: int) -> None:
    draw = random.Random(rate)
    others = [Gap(draw.randrange(SECOND), 2_000) for _ in range(20)]
    assert counted(folded([*ticks(rate), *others], timer=rate, others=20, rate=rate)) == {TICK: rate, OTHER: 20}


def test_of_two_gaps_in_one_turn_the_longer_is_the_tick() -> None:
    regular = ticks(250)
    close = [Gap(gap.begin - 1_500, 1_200) for gap in regular[:10]]
    gaps = sorted([*regular, *close])
    assert [gaps[number] for number in in_phase(gaps, CLOCK, SECOND // 250)] == regular


@pytest.mark.parametrize("timer", [0, 200])
def test_gaps_more_frequent_than_timer_interrupts_are_not_a_tick(timer: int) -> None:
    found = counted(folded(ticks(250), timer=timer))
    assert (found.pop(OTHER, 0), found) == (timer, {Cause(HOST, OUTSIDE): 250 - timer})


def test_regular_gaps_at_another_period_are_not_a_tick() -> None:
    gaps = [Gap(number * 4_012_345, 5_000) for number in range(249)]
    assert in_phase(gaps, CLOCK, 4_012_345) == list(range(249))
    assert in_phase(gaps, CLOCK, SECOND // 250) == []


@pytest.mark.parametrize("rate", RATES)
def test_scattered_gaps_are_not_a_tick(rate: int) -> None:
    draw = random.Random(1)
    gaps = [Gap(draw.randrange(SECOND), 5_000) for _ in range(250)]
    assert TICK not in counted(folded(gaps, timer=250, rate=rate))


def test_gaps_so_many_that_each_turn_has_one_at_any_phase_are_not_a_tick() -> None:
    gaps = [Gap(begin, 1_500) for begin in range(0, SECOND, 10_007)]
    assert in_phase(gaps, CLOCK, SECOND // 250) == []


def test_a_few_gaps_at_one_phase_prove_nothing_and_one_more_does() -> None:
    assert in_phase(ticks(250)[:LEAST], CLOCK, SECOND // 250) == []
    assert in_phase(ticks(250)[: LEAST + 1], CLOCK, SECOND // 250) == list(range(LEAST + 1))


def test_without_gaps_there_is_no_phase() -> None:
    assert in_phase([], CLOCK, SECOND // 250) == []
    assert folded([]) == Account()


def test_the_kernels_coarse_clock_advances_by_whole_periods() -> None:
    period = clock.tick_ns()
    assert 1e9 / max(RATES) <= period * 1.001
    seen, limit = {time.clock_gettime_ns(6)}, time.monotonic() + 0.1
    while time.monotonic() < limit:
        seen.add(time.clock_gettime_ns(6))
    steps = [(each - min(seen)) / period for each in seen]
    assert len(steps) > 2
    assert all(abs(step - round(step)) < 0.01 for step in steps)


def test_timer_interrupts_beyond_those_of_the_tick_are_others() -> None:
    more = [Gap(1_000_000 + number * 7_000_003, 2_000) for number in range(3)]
    gaps = [*ticks(250), *more, Gap(SECOND - 1, 3_000)]
    assert counted(folded(gaps, timer=253)) == {TICK: 250, OTHER: 3, Cause(HOST, OUTSIDE): 1}


def test_a_context_switch_of_the_detector_is_another_task() -> None:
    found = counted(folded([Gap(1_000, 50_000, LOOKED | SWITCHED), Gap(90_000, 50_000, LOOKED | FAULTED)]))
    assert found == {TASK: 1, OWN: 1}


def test_a_gap_below_a_microsecond_is_the_processors() -> None:
    assert [cause.kind for cause in counted(folded([Gap(1_000, STALL_NS - 1)], others=5))] == [STALL]


def test_as_many_gaps_as_interrupts_were_counted_are_interrupts_and_the_longest_left_are_not() -> None:
    gaps = [Gap(number * 7_000_003, 2_000) for number in range(1, 4)] + [Gap(50_000_000, 90_000, LOOKED)]
    done = folded(gaps, others=3, virtual=True)
    assert counted(done) == {OTHER: 3, Cause(HOST, HYPERVISOR): 1}
    assert done.totals[Cause(HOST, HYPERVISOR)].longest == 90_000


def test_without_a_hypervisor_the_host_is_not_claimed() -> None:
    assert counted(folded([Gap(1_000, 90_000, LOOKED)])) == {Cause(HOST, OUTSIDE): 1}


def test_a_gap_too_short_for_a_check_can_be_a_page_fault_if_one_is_unaccounted_for() -> None:
    short = Gap(1_000, LOOK - 1)
    assert [cause.kind for cause in counted(folded([short], faults=1))] == [UNKNOWN]
    assert [cause.kind for cause in counted(folded([short]))] == [HOST]
    assert counted(folded([short, Gap(90_000, 50_000, LOOKED | FAULTED)], faults=1)) == {
        Cause(HOST, OUTSIDE): 1,
        OWN: 1,
    }


def test_the_gaps_most_like_a_known_interrupt_are_the_interrupts() -> None:
    gaps = [
        Gap(number * 7_000_003, length, LOOKED) for number, length in enumerate((2_500, 19_000, 26_000, 900_000), 1)
    ]
    done = folded(gaps, others=2, interruption=20_000.0)
    assert [each.gap.length for each in done.explained if each.parts[0][0] == OTHER] == [19_000, 26_000]


def test_a_gap_far_shorter_than_any_interrupt_is_not_an_interrupt() -> None:
    gaps = [Gap(1_000, 2_500), Gap(90_000, 2_499)]
    done = folded(gaps, others=2, interruption=2_500.0 * CHEAPEST)
    assert [each.parts[0][0] for each in done.explained] == [OTHER, Cause(HOST, OUTSIDE)]
    assert counted(folded(gaps, others=2)) == {OTHER: 2}


def test_a_gap_too_short_for_an_interrupt_may_be_an_unchecked_page_fault() -> None:
    short, seen = Gap(1_000, 2_000), Gap(90_000, 50_000, LOOKED | FAULTED)
    for faults, cause in ((0, Cause(HOST, OUTSIDE)), (1, SHORT)):
        assert counted(folded([short], faults=faults, interruption=40_000)) == {cause: 1}
    assert counted(folded([short, seen], faults=1, interruption=40_000)) == {OWN: 1, Cause(HOST, OUTSIDE): 1}


def test_an_interrupt_that_was_only_counted_says_so() -> None:
    assert OTHER.kind == COUNTED


FLAGS = st.sampled_from([0, LOOKED, LOOKED | SWITCHED, LOOKED | FAULTED])
# At any time, and at one phase of the period: where a tick is looked for, and where it is.
BEGIN = st.one_of(st.integers(0, SECOND), st.integers(0, 249).map(lambda turn: turn * SECOND // 250 + 7_777))
GAPS = st.lists(st.builds(Gap, BEGIN, st.integers(1, 1_000_000), FLAGS), max_size=40, unique_by=lambda g: g.begin)
EVIDENCE = (st.integers(0, 1000), st.integers(0, 50), st.booleans(), st.integers(0, 5), st.sampled_from([0, 9e3, 9e4]))


@given(GAPS, *EVIDENCE)
def test_every_gap_has_one_cause_that_gets_all_of_its_time(
    gaps: list[Gap], timer: int, others: int, virtual: bool, faults: int, interruption: float
) -> None:
    done = folded(gaps, timer, others, virtual, faults=faults, interruption=interruption)
    assert [each.gap for each in done.explained] == sorted(gaps)
    assert all(len(each.parts) == 1 and each.parts[0][1] == each.gap.length for each in done.explained)
    assert sum(total.count for total in done.totals.values()) == len(gaps)
    assert sum(total.total for total in done.totals.values()) == sum(gap.length for gap in gaps)


@pytest.mark.slow
@given(GAPS, *EVIDENCE)
def test_no_more_interrupts_are_named_than_the_kernel_counted(
    gaps: list[Gap], timer: int, others: int, virtual: bool, faults: int, interruption: float
) -> None:
    found = counted(folded(gaps, timer, others, virtual, faults=faults, interruption=interruption))
    assert found.get(OTHER, 0) <= timer + others
    assert found.get(TICK, 0) <= timer * 1.05 + 2 * bool(timer)


@given(GAPS)
def test_ticks_have_one_phase_and_occur_once_per_period(gaps: list[Gap]) -> None:
    gaps.sort()
    begins = [gaps[number].begin for number in in_phase(gaps, CLOCK, SECOND // 250)]
    assert begins == sorted(begins)
    assert all(later - earlier > SECOND // 250 - 2 * BIN_NS for earlier, later in pairwise(begins))
    assert all((begin - begins[0] + 2 * BIN_NS) % (SECOND // 250) < 4 * BIN_NS for begin in begins)


def test_a_counted_tick_that_is_not_at_its_phase_may_be_any_gap() -> None:
    gaps = [gap for number, gap in enumerate(ticks(250)) if number not in (50, 51)]
    found = counted(folded([*gaps, Gap(7_000_003, 6_000, LOOKED)], timer=250, virtual=True))
    assert found == {TICK: 248, PERHAPS: 1}


def test_a_tick_while_another_task_ran_makes_no_gap_of_its_own() -> None:
    all_of_them = ticks(250)
    task = Gap(all_of_them[49].begin + 100_000, 8_000_000, LOOKED | SWITCHED)
    gaps = [gap for number, gap in enumerate(all_of_them) if number not in (50, 51)]
    found = counted(folded([*gaps, task, Gap(7_000_003, 6_000, LOOKED)], timer=250, virtual=True))
    assert found == {TICK: 248, TASK: 1, Cause(HOST, HYPERVISOR): 1}


def test_short_interrupts_that_were_counted_are_not_the_processors() -> None:
    gaps = [Gap(number * 4_900_007, 700) for number in range(1, 200)]
    assert counted(folded(gaps, others=199, interruption=1_500.0)) == {OTHER: 199}
