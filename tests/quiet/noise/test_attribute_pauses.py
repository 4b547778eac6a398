"""Interrupts far longer than the others of their kind: paused by the host, or slow by themselves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import report
from quiet.noise.attribute import (
    BATCH_NS,
    FLOOR_NS,
    HOST,
    HYPERVISOR,
    LONG_FAR,
    LONG_NS,
    OTHERS,
    PAUSE_FAR,
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
def test_without_a_hypervisor_a_slow_handler_keeps_its_time(kind: str) -> None:
    done = ran([((kind, "x"), 2_000)] * 100 + [((kind, "x"), STOP)], virtual=False)
    assert [(cause[:2], took) for cause, took in done.explained[-1].parts] == [((kind, "x"), STOP + 400)]
    assert not any(cause.kind == HOST for cause in done.totals)


def test_too_few_others_decide_nothing() -> None:
    done = ran([(DISK, 2_000)] * (OTHERS - 1) + [(DISK, STOP)])
    assert done.explained[-1].parts == [(Cause(*DISK), STOP + 400)]


def test_a_rare_interrupt_is_compared_with_all_interrupts_if_it_held_the_cpu_very_long() -> None:
    for took, paused in ((STOP, True), (LONG_NS - 400, False)):
        done = ran([(TIMER_TICK, 2_000)] * OTHERS + [(DISK, took)])
        parts = dict(done.explained[-1].parts)
        assert parts == ({host(DISK): took - 2_000, Cause(*DISK): 2_400} if paused else {Cause(*DISK): took + 400})


def test_where_all_interrupts_are_slow_a_rare_one_keeps_its_time() -> None:
    done = ran([(TIMER_TICK, STOP // LONG_FAR)] * OTHERS + [(DISK, STOP)])
    assert done.explained[-1].parts == [(Cause(*DISK), STOP + 400)]


def test_where_handlers_take_milliseconds_a_pause_of_half_a_second_is_reported_anyway() -> None:
    """An emulator's interrupts take so long; PAUSE_FAR times as much is more than the pause."""
    done = ran([(TIMER_TICK, 5_500_000)] * 30 + [(TIMER_TICK, STOP)])
    assert dict(done.explained[-1].parts) == {host(TIMER_TICK): STOP - 5_500_000, Cause(*TIMER_TICK): 5_500_400}


def test_below_a_floor_nothing_is_a_pause() -> None:
    done = ran([(DISK, 100)] * 100 + [(DISK, FLOOR_NS - 400)])
    assert [cause for each in done.explained for cause, _ in each.parts] == [Cause(*DISK)] * 101


def test_a_softirq_may_take_long() -> None:
    burst, stop = BATCH_NS - 400, BATCH_NS + 1
    net = (SOFTIRQ, "NET_RX")
    done = ran([(net, 3_000)] * 50 + [(net, burst), (net, stop)])
    assert done.explained[-2].parts == [(Cause(*net), burst + 400)]
    assert dict(done.explained[-1].parts) == {host(net): stop - 3_000, Cause(*net): 3_400}


@pytest.mark.parametrize("kind", [THREAD, WORK])
def test_the_length_of_a_task_is_never_blamed_on_the_host(kind: str) -> None:
    done = ran([((kind, "bash"), 2_000)] * 100 + [((kind, "bash"), STOP)])
    assert done.explained[-1].parts == [(Cause(kind, "bash"), STOP + 400)]


def test_several_pauses_in_one_run_are_each_reported() -> None:
    pauses = [STOP, STOP + 7, 3 * FLOOR_NS]
    done = ran([(TIMER_TICK, 2_000)] * 50 + [(TIMER_TICK, took) for took in pauses])
    assert [dict(each.parts)[host(TIMER_TICK)] for each in done.explained[-3:]] == [took - 2_000 for took in pauses]
    total = done.totals[host(TIMER_TICK)]
    assert (total.count, total.total, total.longest) == (3, sum(pauses) - 6_000, STOP + 7 - 2_000)
    assert done.totals[Cause(*TIMER_TICK)].count == 53


def test_a_handler_that_is_often_long_is_not_blamed_on_the_host() -> None:
    done = ran(([(DISK, 2_000)] * 4 + [(DISK, 3_000_000)]) * 20)
    assert set(done.totals) == {Cause(*DISK)}


def test_the_sender_does_not_change_the_identity_of_an_interrupt() -> None:
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


def test_frames_too_short_for_a_gap_also_show_what_is_usual() -> None:
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
def test_nested_frames_keep_their_time_and_only_the_paused_one_yields_to_the_host(
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


def test_text_and_json_name_the_enclosing_frame() -> None:
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
    assert "no setting in the guest" in causes[0]["remedy"]
    assert report.share(made.cpus[1], (HOST,)) == pytest.approx(100 * (STOP + 5_000) / 1e9)


NAMES = st.sampled_from([DISK, TIMER_TICK, (SOFTIRQ, "RCU"), (THREAD, "bash"), (NMI, "perf")])
ORDINARY = st.lists(st.tuples(NAMES, st.integers(0, FLOOR_NS - 400)), max_size=60)
PAUSED = st.lists(st.tuples(NAMES, st.sampled_from([FLOOR_NS, BATCH_NS, LONG_NS, STOP])), max_size=4)


@given(ORDINARY)
def test_without_outliers_a_hypervisor_changes_nothing(each: list[tuple[Named, int]]) -> None:
    assert ran(each, virtual=True) == ran(each, virtual=False)


@pytest.mark.slow
@given(ORDINARY, PAUSED, st.integers(0, 30))
def test_attributing_time_to_the_host_keeps_sums_and_counts(
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
def test_the_usual_length_is_below_the_pause_threshold(took: list[tuple[Named, int]]) -> None:
    pauses = Pauses(took, round)
    for name, _ in took:
        known = pauses.usual(name)
        assert (known is None) or FLOOR_NS <= known.limit > known.share >= 0
        assert known is None or name[0] != THREAD
