"""The merge of gaps and frames: every gap's time is somebody's, the host's too, or is said to be nobody's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import report
from quiet.noise.attribute import (
    BATCH_NS,
    FIRMWARE,
    FLOOR_NS,
    HOST,
    HYPERVISOR,
    LONG_FAR,
    LONG_NS,
    OTHERS,
    PAUSE_FAR,
    STALL,
    UNKNOWN,
    Account,
    Cause,
    Gap,
    Pauses,
    account,
)
from quiet.noise.call_nesting import (
    BEGIN,
    CALL,
    END,
    FAULT,
    HRTIMER,
    IRQ,
    NMI,
    POINT,
    SOFTIRQ,
    SWITCH,
    THREAD,
    TIMER,
    VECTOR,
    WORK,
    Frame,
    Share,
    TraceEvent,
    build,
)
from tests.quiet.noise.making import measured, on_cpu, shape

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


def test_what_lies_in_a_gap_beside_its_frame_is_the_way_there_and_back() -> None:
    done = merged([Gap(1000, 2500)], [tick(1200)])
    assert done.explained[0].parts == [(TICK, 2500)]
    total = done.totals[TICK]
    assert (total.count, total.total, total.longest, total.gaps) == (1, 2500, 2500, 1)


def test_of_two_in_one_frame_the_outer_one_has_the_way_there_and_back() -> None:
    frame = Frame(IRQ, "27 eth0", 1000, 5000, inner=[Frame(SOFTIRQ, "NET_RX", 2000, 5000)])
    done = merged([Gap(900, 4200)], [frame])
    assert done.explained[0].parts == [(Cause(SOFTIRQ, "NET_RX"), 3000), (Cause(IRQ, "27 eth0"), 1200)]


def test_two_frames_in_one_gap_have_half_each_of_what_lies_beside_them() -> None:
    frames = [Frame(IRQ, "27 eth0", 1000, 2000), Frame(IRQ, "28 nvme", 2500, 5500)]
    done = merged([Gap(900, 5000)], frames)
    assert done.explained[0].parts == [(Cause(IRQ, "28 nvme"), 3500), (Cause(IRQ, "27 eth0"), 1500)]


def test_the_way_there_and_back_counts_for_each_outermost_frame_however_much_is_nested_in_it() -> None:
    nested = [Frame(SOFTIRQ, "NET_RX", 1200, 1500), Frame(SOFTIRQ, "RCU", 1500, 1900)]
    frames = [Frame(IRQ, "27 eth0", 1000, 2000, inner=nested), Frame(IRQ, "28 nvme", 2500, 5500)]
    done = merged([Gap(900, 5000)], frames)
    assert dict(done.explained[0].parts) == {
        Cause(IRQ, "28 nvme"): 3500,
        Cause(IRQ, "27 eth0"): 800,
        Cause(SOFTIRQ, "NET_RX"): 300,
        Cause(SOFTIRQ, "RCU"): 400,
    }


def test_what_carries_something_gives_it_the_way_there_and_back_too() -> None:
    first = Frame(VECTOR, "local_timer", 1000, 2000, inner=[Frame(HRTIMER, "tick", 1200, 1800)])
    first.inner.append(Frame(SOFTIRQ, "RCU", 1850, 1950))
    done = merged([Gap(900, 1300)], [first])
    assert done.explained[0].parts == [(TICK, 1200), (Cause(SOFTIRQ, "RCU"), 100)]


def test_far_more_than_usual_beside_a_frame_was_spent_outside_of_this_kernel() -> None:
    starts = range(100_000, 1_000_000, 100_000)
    gaps = [Gap(start, 3_000) for start in starts] + [Gap(2_000_000, 52_000)]  # 1,000 beside each, then 50,000
    done = merged(gaps, [tick(start + 500) for start in (*starts, 2_000_000)])
    assert done.explained[-1].parts == [(Cause(HOST, FIRMWARE), 49_000), (TICK, 3_000)]


def test_a_long_gap_without_a_frame_is_the_firmwares_or_the_hypervisors() -> None:
    assert causes(merged([Gap(5000, 20_000)], [])) == [Cause(HOST, FIRMWARE)]
    assert causes(merged([Gap(5000, 20_000)], [], virtual=True)) == [Cause(HOST, HYPERVISOR)]


def test_a_short_gap_without_a_frame_is_the_processors() -> None:
    assert causes(merged([Gap(5000, 300)], []))[0].kind == STALL


def test_after_the_traces_end_nothing_is_claimed() -> None:
    found = causes(merged([Gap(5000, 20_000), Gap(90_000, 20_000)], [], whole_until=50_000))
    assert [cause.kind for cause in found] == [HOST, UNKNOWN]


def test_what_a_frame_explains_is_explained_after_the_traces_end_too() -> None:
    assert causes(merged([Gap(60_000, 3000)], [tick(60_100)], whole_until=50_000)) == [TICK]


def test_far_more_than_usual_beside_a_frame_was_spent_elsewhere() -> None:
    gaps = [Gap(number * 100_000, 2_400) for number in range(1, 20)] + [Gap(5_000_000, 500_000)]
    frames = [tick(gap.begin + 200) for gap in gaps]
    done = merged(gaps, frames)
    last = dict(done.explained[-1].parts)
    assert last == {Cause(HOST, FIRMWARE): 497_600, TICK: 2_400}
    assert {cause for each in done.explained[:-1] for cause, _ in each.parts} == {TICK}


def test_of_far_more_than_usual_each_of_two_frames_keeps_what_is_usual() -> None:
    gaps = [Gap(number * 100_000, 2_400) for number in range(1, 20)] + [Gap(5_000_000, 500_000)]
    frames = [tick(gap.begin + 200) for gap in gaps]
    frames.append(Frame(IRQ, "27 eth0", 5_100_000, 5_103_000))
    last = dict(merged(gaps, frames).explained[-1].parts)
    assert last == {Cause(HOST, FIRMWARE): 500_000 - 2_400 - 3_400, Cause(IRQ, "27 eth0"): 3_400, TICK: 2_400}


def test_frames_too_short_for_a_gap_are_counted_without_time() -> None:
    done = merged([Gap(1000, 2400)], [tick(1200), tick(500_000, 300), tick(WINDOW[1] + 5, 300)])
    total = done.totals[TICK]
    assert (total.count, total.gaps, total.total) == (2, 1, 2400)


def test_a_frame_over_two_gaps_is_with_the_one_that_it_shares_more_with() -> None:
    for gaps, kinds in (
        ([Gap(900, 500), Gap(1600, 3500)], [STALL, IRQ]),
        ([Gap(900, 3500), Gap(4600, 500)], [IRQ, STALL]),
    ):
        done = merged(gaps, [Frame(IRQ, "27 eth0", 1000, 5000)])
        assert [cause.kind for cause in causes(done)] == kinds
        assert done.totals[Cause(IRQ, "27 eth0")].count == 1


@pytest.mark.parametrize("at", [1000, 1300, 1599])
def test_a_moment_in_a_gap_explains_all_of_it(at: int) -> None:
    fault = Frame(FAULT, "page fault", at, at)
    done = merged([Gap(100, 300), Gap(1000, 600), Gap(1700, 300)], [fault])
    assert [each.parts for each in done.explained][1] == [(Cause(FAULT, "page fault"), 600)]
    assert [cause.kind for cause in causes(done)] == [STALL, FAULT, STALL]
    assert done.totals[Cause(FAULT, "page fault")].count == 1


def test_a_moment_outside_of_every_gap_is_counted_without_time() -> None:
    done = merged([Gap(100, 300)], [Frame(FAULT, "page fault", 700, 700)])
    assert causes(done)[0].kind == STALL
    total = done.totals[Cause(FAULT, "page fault")]
    assert (total.count, total.total, total.gaps) == (1, 0, 0)


def test_nothing_at_all_is_an_account_of_nothing() -> None:
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


@given(GAPS, st.booleans(), st.integers(0, 30_000_000))
def test_the_shares_of_a_gap_are_all_of_it_but_for_rounding(
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


@given(GAPS)
def test_whoever_is_named_for_a_gap_was_in_it(
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


SPAN = (0, 10**13)
STEP = 10 * LONG_NS
HANDLERS = (VECTOR, IRQ, NMI, HRTIMER, TIMER, CALL)
STOP = 535_000_000
Named = tuple[str, str]
DISK, TIMER_TICK = (IRQ, "27 virtio1"), (HRTIMER, "tick")


def ran(each: list[tuple[Named, int]], virtual: bool = True, threshold: int = 0) -> Account:
    """All of these one after another, each in a gap that is 400 longer, where it is as long as the threshold."""
    frames = [Frame(kind, name, n * STEP, n * STEP + took) for n, ((kind, name), took) in enumerate(each, 1)]
    gaps = [Gap(frame.begin - 200, frame.length + 400) for frame in frames if frame.length >= threshold]
    return merged_virtual(gaps, frames, virtual)


def merged_virtual(gaps: list[Gap], frames: list[Frame], virtual: bool = True) -> Account:
    def name(share: Share) -> Cause:
        return Cause(share.kind, share.name, "CPU 0" if share.kind == CALL else "")

    return account(gaps, frames, SPAN, name, round, SPAN[1], virtual)


def host(during: Named) -> Cause:
    return Cause(HOST, HYPERVISOR, " ".join(during))


@pytest.mark.parametrize("kind", HANDLERS)
def test_an_interrupt_far_longer_than_its_others_was_paused_by_the_host(kind: str) -> None:
    done = ran([((kind, "x"), 2_000)] * OTHERS + [((kind, "x"), 2_400 * PAUSE_FAR + 5_000)])
    by = "CPU 0" if kind == CALL else ""
    assert done.explained[-1].parts == [(host((kind, "x")), 2_400 * PAUSE_FAR + 3_000), (Cause(kind, "x", by), 2_400)]
    assert done.totals[Cause(kind, "x", by)].count == OTHERS + 1
    assert (done.totals[host((kind, "x"))].count, done.totals[host((kind, "x"))].gaps) == (1, 1)


@pytest.mark.parametrize("kind", HANDLERS)
def test_without_a_hypervisor_a_slow_handler_is_a_slow_handler(kind: str) -> None:
    done = ran([((kind, "x"), 2_000)] * 100 + [((kind, "x"), STOP)], virtual=False)
    assert [(cause[:2], took) for cause, took in done.explained[-1].parts] == [((kind, "x"), STOP + 400)]
    assert not any(cause.kind == HOST for cause in done.totals)


def test_too_few_others_do_not_tell() -> None:
    done = ran([(DISK, 2_000)] * (OTHERS - 1) + [(DISK, STOP)])
    assert done.explained[-1].parts == [(Cause(*DISK), STOP + 400)]


def test_what_came_seldom_is_compared_with_all_interrupts_if_it_held_the_cpu_very_long() -> None:
    for took, paused in ((STOP, True), (LONG_NS - 400, False)):
        done = ran([(TIMER_TICK, 2_000)] * OTHERS + [(DISK, took)])
        parts = dict(done.explained[-1].parts)
        assert parts == ({host(DISK): took - 2_000, Cause(*DISK): 2_400} if paused else {Cause(*DISK): took + 400})


def test_where_all_interrupts_are_slow_one_that_came_seldom_stays_what_it_is() -> None:
    done = ran([(TIMER_TICK, STOP // LONG_FAR)] * OTHERS + [(DISK, STOP)])
    assert done.explained[-1].parts == [(Cause(*DISK), STOP + 400)]


def test_where_handlers_take_milliseconds_a_pause_of_half_a_second_is_told_all_the_same() -> None:
    """An emulator's interrupts take so long; PAUSE_FAR times as much is more than the pause."""
    done = ran([(TIMER_TICK, 5_500_000)] * 30 + [(TIMER_TICK, STOP)])
    assert dict(done.explained[-1].parts) == {host(TIMER_TICK): STOP - 5_500_000, Cause(*TIMER_TICK): 5_500_400}


def test_below_a_floor_nothing_is_a_pause() -> None:
    done = ran([(DISK, 100)] * 100 + [(DISK, FLOOR_NS - 400)])
    assert [cause for each in done.explained for cause, _ in each.parts] == [Cause(*DISK)] * 101


def test_a_softirq_may_have_much_to_do() -> None:
    burst, stop = BATCH_NS - 400, BATCH_NS + 1
    net = (SOFTIRQ, "NET_RX")
    done = ran([(net, 3_000)] * 50 + [(net, burst), (net, stop)])
    assert done.explained[-2].parts == [(Cause(*net), burst + 400)]
    assert dict(done.explained[-1].parts) == {host(net): stop - 3_000, Cause(*net): 3_400}


@pytest.mark.parametrize("kind", [THREAD, WORK])
def test_how_long_a_task_runs_is_its_own_affair(kind: str) -> None:
    done = ran([((kind, "bash"), 2_000)] * 100 + [((kind, "bash"), STOP)])
    assert done.explained[-1].parts == [(Cause(kind, "bash"), STOP + 400)]


def test_several_pauses_in_one_run_are_each_told() -> None:
    pauses = [STOP, STOP + 7, 3 * FLOOR_NS]
    done = ran([(TIMER_TICK, 2_000)] * 50 + [(TIMER_TICK, took) for took in pauses])
    assert [dict(each.parts)[host(TIMER_TICK)] for each in done.explained[-3:]] == [took - 2_000 for took in pauses]
    total = done.totals[host(TIMER_TICK)]
    assert (total.count, total.total, total.longest) == (3, sum(pauses) - 6_000, STOP + 7 - 2_000)
    assert done.totals[Cause(*TIMER_TICK)].count == 53


def test_a_handler_that_is_long_in_one_of_five_cases_is_long_by_itself() -> None:
    done = ran(([(DISK, 2_000)] * 4 + [(DISK, 3_000_000)]) * 20)
    assert set(done.totals) == {Cause(*DISK)}


def test_who_sent_an_interrupt_makes_no_other_of_it() -> None:
    frames = [Frame(CALL, "f", n * STEP, n * STEP + (2_000 if n < 30 else STOP)) for n in range(1, 31)]
    gaps = [Gap(frame.begin, frame.length) for frame in frames]
    done = account(
        gaps,
        frames,
        SPAN,
        lambda s: Cause(s.kind, s.name, f"CPU {s.begin // STEP}"),
        round,
        SPAN[1],
        True,
    )
    assert dict(done.explained[-1].parts) == {host((CALL, "f")): STOP - 2_000, Cause(CALL, "f", "CPU 30"): 2_000}


def test_what_was_too_short_for_a_gap_tells_what_is_usual_too() -> None:
    done = ran([(DISK, 2_000)] * 50 + [(DISK, STOP)], threshold=10_000)
    assert [dict(each.parts) for each in done.explained] == [{host(DISK): STOP - 1_600, Cause(*DISK): 2_000}]
    assert done.totals[Cause(*DISK)].count == 51


def one(begin: int, irq: int, softirq: int) -> list[TraceEvent]:
    """The events of a device's interrupt with a softirq after it, in a task that it interrupts."""
    at = [begin + 100, begin + 300 + irq, begin + 400 + irq, begin + 400 + irq + softirq]
    return [
        TraceEvent(begin, SWITCH, THREAD, "bash", 10, other=7),
        TraceEvent(at[0], BEGIN, IRQ, "27 virtio1", 7, 27),
        TraceEvent(at[0] + 100, POINT, NMI, "perf", 7, 50),
        TraceEvent(at[1], END, IRQ, "", 7, 27),
        TraceEvent(at[2], BEGIN, SOFTIRQ, "NET_RX", 7, 3),
        TraceEvent(at[3], END, SOFTIRQ, "", 7, 3),
        TraceEvent(at[3] + 500, SWITCH, THREAD, "detector", 7, other=10),
    ]


@pytest.mark.parametrize(("irq", "softirq", "during"), [(STOP, 0, DISK), (0, STOP, (SOFTIRQ, "NET_RX"))])
def test_what_was_nested_has_its_own_and_only_the_paused_one_gives_to_the_host(
    irq: int, softirq: int, during: Named
) -> None:
    pieces = [one(n * STEP, 2_000 + irq * (n == 30), 4_000 + softirq * (n == 30)) for n in range(1, 31)]
    frames = build([event for piece in pieces for event in piece], 0, SPAN[1], frozenset({0, 10}))
    gaps = [Gap(piece[0].time, piece[-1].time - piece[0].time) for piece in pieces]
    done = merged_virtual(gaps, frames)
    assert dict(done.explained[-1].parts) == {host(during): STOP, **dict(done.explained[0].parts)}
    assert dict(done.explained[0].parts) == {
        Cause(SOFTIRQ, "NET_RX"): 4_000,
        Cause(*DISK): 2_150,
        Cause(THREAD, "bash"): 700,
        Cause(NMI, "perf"): 50,
    }


def test_a_pause_before_the_timers_function_is_found_as_one_in_the_timer() -> None:
    frames = []
    for n in range(1, 31):
        end = n * STEP + 2_000 + STOP * (n == 30)
        inner = Frame(HRTIMER, "tick", end - 500, end - 100)
        frames.append(Frame(VECTOR, "local_timer", n * STEP, end, inner=[inner]))
    done = merged_virtual([Gap(frame.begin, frame.length) for frame in frames], frames)
    assert dict(done.explained[-1].parts) == {host(TIMER_TICK): STOP, Cause(*TIMER_TICK): 2_000}


def test_people_and_programs_are_told_what_it_was_inside_of() -> None:
    made = measured({1: on_cpu([(host(DISK), STOP), (Cause(HOST, HYPERVISOR), 5_000), (Cause(*DISK), 2_000)])})
    causes = shape(made)["cpus"]["1"]["causes"]
    assert [each["cause"] for each in causes] == [
        "host took the CPU inside IRQ 27 virtio1",
        "host took the CPU",
        "IRQ 27 virtio1",
    ]
    assert [(each["kind"], each["inside"]) for each in causes] == [
        (HOST, "IRQ 27 virtio1"),
        (HOST, None),
        (IRQ, None),
    ]
    assert causes[0]["remedy"] == causes[1]["remedy"]
    assert "no setting in here" in causes[0]["remedy"]
    assert report.share(made.cpus[1], (HOST,)) == pytest.approx(100 * (STOP + 5_000) / 1e9)


NAMES = st.sampled_from([DISK, TIMER_TICK, (SOFTIRQ, "RCU"), (THREAD, "bash"), (NMI, "perf")])
ORDINARY = st.lists(st.tuples(NAMES, st.integers(0, FLOOR_NS - 400)), max_size=60)
PAUSED = st.lists(st.tuples(NAMES, st.sampled_from([FLOOR_NS, BATCH_NS, LONG_NS, STOP])), max_size=4)


@given(ORDINARY)
def test_without_outliers_a_hypervisor_changes_nothing(each: list[tuple[Named, int]]) -> None:
    assert ran(each, virtual=True) == ran(each, virtual=False)


@given(ORDINARY, PAUSED, st.integers(0, 30))
def test_whatever_is_the_hosts_the_sums_and_counts_stay(
    each: list[tuple[Named, int]], paused: list[tuple[Named, int]], more: int
) -> None:
    done = ran([*each, *[(TIMER_TICK, 2_000)] * more, *paused])
    bare = ran([*each, *[(TIMER_TICK, 2_000)] * more, *paused], virtual=False)
    for mine, other in zip(done.explained, bare.explained, strict=True):
        assert sum(took for _, took in mine.parts) == sum(took for _, took in other.parts) == mine.gap.length
        assert all(took >= 0 for _, took in mine.parts)
    assert {cause: total.count for cause, total in done.totals.items() if cause.kind != HOST} == {
        cause: total.count for cause, total in bare.totals.items()
    }
    assert sum(total.total for total in done.totals.values()) == sum(total.total for total in bare.totals.values())


@given(st.lists(st.tuples(NAMES, st.integers(0, STOP)), max_size=60))
def test_what_is_usual_is_less_than_what_is_a_pause(took: list[tuple[Named, int]]) -> None:
    pauses = Pauses(took, round)
    for name, _ in took:
        known = pauses.usual(name)
        assert (known is None) or FLOOR_NS <= known.limit > known.share >= 0
        assert known is None or name[0] != THREAD
