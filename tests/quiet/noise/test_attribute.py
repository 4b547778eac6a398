"""The merge of gaps and frames: every gap's time has a cause, the host included, or is reported as unexplained."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise.attribute import (
    FIRMWARE,
    HOST,
    HYPERVISOR,
    NOT_SMI,
    OUTSIDE,
    STALL,
    UNKNOWN,
    Account,
    Cause,
    Gap,
    account,
    name_smis,
)
from quiet.noise.call_nesting import (
    FAULT,
    HRTIMER,
    IRQ,
    SOFTIRQ,
    THREAD,
    VECTOR,
    Frame,
    Share,
)

WINDOW = (0, 10_000_000_000)
TICK = Cause(HRTIMER, "tick")


def merged(gaps: list[Gap], frames: list[Frame], virtual: bool = False, whole_until: int = WINDOW[1]) -> Account:
    def name(share: Share) -> Cause:
        return Cause(share.kind, share.name)

    return account(gaps, frames, WINDOW, name, round, whole_until, virtual)


def tick(begin: int, length: int = 2_000) -> Frame:
    inner = Frame(HRTIMER, "tick", begin + 100, begin + length - 100)
    return Frame(VECTOR, "local_timer", begin, begin + length, inner=[inner])


def causes(done: Account) -> list[Cause]:
    return [each.parts[0][0] for each in done.explained]


def test_time_in_a_gap_outside_its_frame_is_entry_and_exit() -> None:
    done = merged([Gap(1000, 2500)], [tick(1200)])
    assert done.explained[0].parts == [(TICK, 2500)]
    total = done.totals[TICK]
    assert (total.count, total.total, total.longest, total.gaps) == (1, 2500, 2500, 1)


def test_of_two_nested_frames_the_outer_one_gets_entry_and_exit() -> None:
    frame = Frame(IRQ, "27 eth0", 1000, 5000, inner=[Frame(SOFTIRQ, "NET_RX", 2000, 5000)])
    done = merged([Gap(900, 4200)], [frame])
    assert done.explained[0].parts == [(Cause(SOFTIRQ, "NET_RX"), 3000), (Cause(IRQ, "27 eth0"), 1200)]


def test_two_frames_in_one_gap_share_the_time_outside_them_equally() -> None:
    frames = [Frame(IRQ, "27 eth0", 1000, 2000), Frame(IRQ, "28 nvme", 2500, 5500)]
    done = merged([Gap(900, 5000)], frames)
    assert done.explained[0].parts == [(Cause(IRQ, "28 nvme"), 3500), (Cause(IRQ, "27 eth0"), 1500)]


def test_entry_and_exit_count_for_each_outermost_frame_regardless_of_nesting() -> None:
    nested = [Frame(SOFTIRQ, "NET_RX", 1200, 1500), Frame(SOFTIRQ, "RCU", 1500, 1900)]
    frames = [Frame(IRQ, "27 eth0", 1000, 2000, inner=nested), Frame(IRQ, "28 nvme", 2500, 5500)]
    done = merged([Gap(900, 5000)], frames)
    assert dict(done.explained[0].parts) == {
        Cause(IRQ, "28 nvme"): 3500,
        Cause(IRQ, "27 eth0"): 800,
        Cause(SOFTIRQ, "NET_RX"): 300,
        Cause(SOFTIRQ, "RCU"): 400,
    }


def test_a_carrier_passes_its_entry_and_exit_to_the_carried_frame() -> None:
    first = Frame(VECTOR, "local_timer", 1000, 2000, inner=[Frame(HRTIMER, "tick", 1200, 1800)])
    first.inner.append(Frame(SOFTIRQ, "RCU", 1850, 1950))
    done = merged([Gap(900, 1300)], [first])
    assert done.explained[0].parts == [(TICK, 1200), (Cause(SOFTIRQ, "RCU"), 100)]


def test_unusually_long_time_beside_a_frame_was_spent_outside_this_kernel() -> None:
    starts = range(100_000, 1_000_000, 100_000)
    gaps = [Gap(start, 3_000) for start in starts] + [Gap(2_000_000, 52_000)]  # 1,000 beside each, then 50,000
    done = merged(gaps, [tick(start + 500) for start in (*starts, 2_000_000)])
    assert done.explained[-1].parts == [(Cause(HOST, OUTSIDE), 49_000), (TICK, 3_000)]


UNTRACED = [
    Gap(begin, length) for begin, length in ((10_000, 2_000), (20_000, 9_000), (40_000, 3_000), (60_000, 4_000))
]


@pytest.mark.parametrize(
    ("counted", "lengths"),
    [
        (None, {OUTSIDE: 18_000}),
        (0, {NOT_SMI: 18_000}),
        (1, {FIRMWARE: 9_000, NOT_SMI: 9_000}),
        (2, {FIRMWARE: 13_000, NOT_SMI: 5_000}),
        (9, {FIRMWARE: 18_000}),
    ],
)
def test_as_many_untraced_gaps_are_smis_as_were_counted_the_longest(
    counted: int | None, lengths: dict[str, int]
) -> None:
    done = merged(UNTRACED, [])
    name_smis(done, counted)
    assert {cause.name: total.total for cause, total in done.totals.items()} == lengths
    assert sum(total.count for total in done.totals.values()) == len(UNTRACED)
    assert sum(took for each in done.explained for _, took in each.parts) == 18_000


def test_where_nothing_is_untraced_smis_name_nothing() -> None:
    done = merged([Gap(1000, 2500)], [tick(1200)])
    name_smis(done, 5)
    assert list(done.totals) == [TICK]


def test_a_long_gap_without_a_frame_is_untraced_or_the_hypervisors() -> None:
    assert causes(merged([Gap(5000, 20_000)], [])) == [Cause(HOST, OUTSIDE)]
    assert causes(merged([Gap(5000, 20_000)], [], virtual=True)) == [Cause(HOST, HYPERVISOR)]


def test_a_short_gap_without_a_frame_is_the_processors() -> None:
    assert causes(merged([Gap(5000, 300)], []))[0].kind == STALL


def test_after_the_traces_end_nothing_is_claimed() -> None:
    found = causes(merged([Gap(5000, 20_000), Gap(90_000, 20_000)], [], whole_until=50_000))
    assert [cause.kind for cause in found] == [HOST, UNKNOWN]


def test_a_gap_explained_by_a_frame_is_explained_even_after_the_traces_end() -> None:
    assert causes(merged([Gap(60_000, 3000)], [tick(60_100)], whole_until=50_000)) == [TICK]


def test_unusually_long_time_beside_a_frame_was_spent_elsewhere() -> None:
    gaps = [Gap(number * 100_000, 2_400) for number in range(1, 20)] + [Gap(5_000_000, 500_000)]
    frames = [tick(gap.begin + 200) for gap in gaps]
    done = merged(gaps, frames)
    last = dict(done.explained[-1].parts)
    assert last == {Cause(HOST, OUTSIDE): 497_600, TICK: 2_400}
    assert {cause for each in done.explained[:-1] for cause, _ in each.parts} == {TICK}


def test_each_of_two_frames_keeps_its_usual_time() -> None:
    gaps = [Gap(number * 100_000, 2_400) for number in range(1, 20)] + [Gap(5_000_000, 500_000)]
    frames = [tick(gap.begin + 200) for gap in gaps]
    frames.append(Frame(IRQ, "27 eth0", 5_100_000, 5_103_000))
    last = dict(merged(gaps, frames).explained[-1].parts)
    assert last == {Cause(HOST, OUTSIDE): 500_000 - 2_400 - 3_400, Cause(IRQ, "27 eth0"): 3_400, TICK: 2_400}


def test_frames_too_short_for_a_gap_are_counted_without_time() -> None:
    done = merged([Gap(1000, 2400)], [tick(1200), tick(500_000, 300), tick(WINDOW[1] + 5, 300)])
    total = done.totals[TICK]
    assert (total.count, total.gaps, total.total) == (2, 1, 2400)


def test_a_frame_over_two_gaps_belongs_to_the_one_with_the_larger_overlap() -> None:
    for gaps, kinds in (
        ([Gap(900, 500), Gap(1600, 3500)], [STALL, IRQ]),
        ([Gap(900, 3500), Gap(4600, 500)], [IRQ, STALL]),
    ):
        done = merged(gaps, [Frame(IRQ, "27 eth0", 1000, 5000)])
        assert [cause.kind for cause in causes(done)] == kinds
        assert done.totals[Cause(IRQ, "27 eth0")].count == 1


@pytest.mark.parametrize("at", [1000, 1300, 1599])
def test_an_instant_event_in_a_gap_explains_all_of_it(at: int) -> None:
    fault = Frame(FAULT, "page fault", at, at)
    done = merged([Gap(100, 300), Gap(1000, 600), Gap(1700, 300)], [fault])
    assert [each.parts for each in done.explained][1] == [(Cause(FAULT, "page fault"), 600)]
    assert [cause.kind for cause in causes(done)] == [STALL, FAULT, STALL]
    assert done.totals[Cause(FAULT, "page fault")].count == 1


def test_a_moment_outside_every_gap_is_counted_without_time() -> None:
    done = merged([Gap(100, 300)], [Frame(FAULT, "page fault", 700, 700)])
    assert causes(done)[0].kind == STALL
    total = done.totals[Cause(FAULT, "page fault")]
    assert (total.count, total.total, total.gaps) == (1, 0, 0)


def test_without_gaps_and_events_nothing_is_attributed() -> None:
    assert merged([], []) == Account()


KINDS = st.sampled_from([(IRQ, "27 a"), (IRQ, "28 b"), (SOFTIRQ, "RCU"), (VECTOR, "reschedule"), (THREAD, "bash")])
LENGTH = st.one_of(st.integers(0, 300), st.integers(0, 20_000), st.integers(0, 5_000_000))
# A gap: the time before it, and in it frames, each with the time before it, and the time after the last one.
GAPS = st.lists(
    st.tuples(st.integers(1, 10_000), st.lists(st.tuples(LENGTH, LENGTH, KINDS), max_size=3), LENGTH), max_size=8
)


def laid_out(drawn: list[tuple[int, list[tuple[int, int, tuple[str, str]]], int]]) -> tuple[list[Gap], list[Frame]]:
    time, gaps, frames = 0, [], []
    for before, inner, after in drawn:
        time += before
        first = time
        for distance, length, (kind, name) in inner:
            frames.append(Frame(kind, name, time + distance, time + distance + length))
            time += distance + length
        time += after + 1
        gaps.append(Gap(first, time - first))
    return gaps, frames


@pytest.mark.slow
@given(GAPS, st.booleans(), st.integers(0, 30_000_000))
def test_the_shares_of_a_gap_add_up_to_it_except_for_rounding(
    drawn: list[tuple[int, list[tuple[int, int, tuple[str, str]]], int]], virtual: bool, whole_until: int
) -> None:
    gaps, frames = laid_out(drawn)
    done = merged(gaps, frames, virtual, whole_until)
    assert [each.gap for each in done.explained] == gaps
    for each in done.explained:
        lengths = [length for _, length in each.parts]
        assert all(length >= 0 for length in lengths)
        assert lengths == sorted(lengths, reverse=True)
        end = each.gap.begin + each.gap.length
        outermost = sum(each.gap.begin <= frame.begin and frame.end <= end for frame in frames)
        assert each.gap.length - max(outermost, 1) < sum(lengths) <= each.gap.length


@given(GAPS, st.booleans())
def test_the_totals_are_the_sum_of_the_gaps_and_every_frame_is_counted_once(
    drawn: list[tuple[int, list[tuple[int, int, tuple[str, str]]], int]], virtual: bool
) -> None:
    gaps, frames = laid_out(drawn)
    done = merged(gaps, frames, virtual)
    for cause, total in done.totals.items():
        mine = [length for each in done.explained for found, length in each.parts if found == cause]
        assert (total.total, total.longest, total.gaps) == (sum(mine), max(mine, default=0), len(mine))
        if cause.kind not in (HOST, STALL, UNKNOWN):
            assert total.count == sum(Cause(frame.kind, frame.name) == cause for frame in frames)


@pytest.mark.slow
@given(GAPS)
def test_every_cause_of_a_gap_occurred_in_it(
    drawn: list[tuple[int, list[tuple[int, int, tuple[str, str]]], int]],
) -> None:
    gaps, frames = laid_out(drawn)
    for each in merged(gaps, frames).explained:
        end = each.gap.begin + each.gap.length
        inside = {Cause(f.kind, f.name) for f in frames if each.gap.begin <= f.begin and f.end <= end}
        assert all(cause in inside or cause.kind in (HOST, STALL) for cause, _ in each.parts)


@pytest.mark.parametrize("late", [0, 400])
def test_a_frame_that_only_partly_lies_in_a_gap_is_no_more_than_the_gap(late: int) -> None:
    """The frame that the trace begins or ends with may reach out of the gap; its time there was not lost."""
    done = merged([Gap(1000, 600)], [Frame(THREAD, "bash", 200 + late, 1500 + late)])
    assert sum(length for _, length in done.explained[0].parts) <= 600
