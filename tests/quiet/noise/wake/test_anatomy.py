"""A wake-up is taken apart into phases that add up, and each part has a cause. On synthetic events; a tick is 1 ns."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quiet.noise.attribute import HOST, HYPERVISOR, IDLE, IRQS_OFF, OTHER_CPU, OUTSIDE, SCHEDULER, USER_RETURN, Cause
from quiet.noise.call_nesting import (
    BEGIN,
    END,
    HRTIMER,
    IRQ,
    NMI,
    NOTE,
    POINT,
    SOFTIRQ,
    SWITCH,
    THREAD,
    VECTOR,
    Frame,
    Share,
    TraceEvent,
)
from quiet.noise.wake.anatomy import IDLE_NOTE, NOT_IDLE, WAKING_NOTE, Anatomy, Limits, Thread, Waking, clipped, dissect

PID, CPU, HOG = 77, 3, 812
DUE = 1_000_000
LIMITS = Limits(10, 100_000, virtual=True)
STATES = {0: "POLL", 1: "C1", 2: "C6"}
COMMS = {HOG: "hog", PID: "quiet-wake"}
THREAD_3 = Thread(CPU, PID, lambda number: STATES.get(number, str(number)), lambda pid: COMMS.get(pid, ""))


def name(share: Share) -> Cause:
    return Cause(share.kind, share.name, str(share.pid) if share.kind == THREAD else "")


def at(time: int, action: str, kind: str, what: str = "", pid: int = 0, key: int = 0, other: int = 0) -> TraceEvent:
    return TraceEvent(DUE + time, action, kind, what, pid, key, other)


def sleeps(time: int, to: int = 0, comm: str = "swapper") -> list[TraceEvent]:
    """The thread goes to sleep, and the CPU goes to another task, or to idle in C1."""
    events = [at(time, SWITCH, THREAD, comm, PID, other=to)]
    return events if to else [*events, at(time + 500, NOTE, IDLE_NOTE, key=1)]


def timer(time: int, pid: int = 0) -> list[TraceEvent]:
    """The timer's interrupt: 300 from its beginning to the thread's wake-up, 1,000 in all."""
    return [
        at(time, BEGIN, VECTOR, "local_timer", pid, 236),
        at(time + 100, BEGIN, HRTIMER, "hrtimer_wakeup", pid, 5),
        at(time + 300, NOTE, WAKING_NOTE, "", pid, other=PID),
        at(time + 400, END, HRTIMER, "", pid, 5),
        at(time + 1000, END, VECTOR, "local_timer", pid, 236),
    ]


def runs(time: int, pid: int = 0) -> list[TraceEvent]:
    return [at(time, SWITCH, THREAD, "quiet-wake", pid, other=PID)]


def wakings(time: int, cpu: int = CPU) -> list[Waking]:
    return [Waking(DUE + time, cpu, PID)]


def taken_apart(events: list[TraceEvent], woken: list[Waking], latency: int, limits: Limits = LIMITS) -> Anatomy:
    found = dissect(events, woken, THREAD_3, DUE, DUE + latency, name, limits)
    assert found
    assert sum(found.phases) == latency
    assert sum(part.ticks for part in found.parts) == latency
    return found


def parts(found: Anatomy) -> dict[tuple[str, Cause], int]:
    return {(part.phase, part.cause): part.ticks for part in found.parts}


def test_a_cpu_that_leaves_an_idle_state_late_has_that_state_as_its_cause() -> None:
    events = [*sleeps(-900_000), at(40_000, NOTE, IDLE_NOTE, key=NOT_IDLE), *timer(40_200), *runs(43_000)]
    found = taken_apart(events, wakings(40_500), 44_000)
    assert found.phases == (40_200, 300, 2_500, 1_000)
    assert found.parts[0] == ("timer", Cause(IDLE, "C1"), 40_000)
    assert parts(found)["timer", Cause(IRQS_OFF, "the idle task")] == 200
    assert parts(found)["return", Cause(USER_RETURN, "")] == 1_000


def test_the_longest_part_comes_first() -> None:
    events = [*sleeps(-900_000), at(40_000, NOTE, IDLE_NOTE, key=NOT_IDLE), *timer(40_200), *runs(43_000)]
    lengths = [part.ticks for part in taken_apart(events, wakings(40_500), 44_000).parts]
    assert lengths == sorted(lengths, reverse=True)


def test_a_task_that_runs_on_past_the_due_time_kept_interrupts_off() -> None:
    events = [*sleeps(-900_000, HOG, "hog"), *timer(300_000, HOG), *runs(302_000, HOG)]
    found = taken_apart(events, wakings(300_300), 302_500)
    assert found.parts[0] == ("timer", Cause(IRQS_OFF, "task hog (812)"), 300_000)


def test_the_running_task_is_known_from_its_events_if_the_trace_begins_after_its_switch() -> None:
    events = [at(-1000, POINT, NMI, "watchdog", HOG), *timer(300_000, HOG), *runs(302_000, HOG)]
    found = taken_apart(events, wakings(300_300), 302_500)
    assert found.parts[0] == ("timer", Cause(IRQS_OFF, "task hog (812)"), 300_000)


def test_an_interrupt_that_comes_before_the_timer_has_its_own_name() -> None:
    device = [at(-2_000, BEGIN, IRQ, "131 nvme0q1", key=131), at(80_000, END, IRQ, key=131)]
    events = [*sleeps(-900_000), at(-2_500, NOTE, IDLE_NOTE, key=NOT_IDLE), *device, *timer(80_100), *runs(82_000)]
    found = taken_apart(events, wakings(80_400), 82_100)
    assert found.parts[0] == ("timer", Cause(IRQ, "131 nvme0q1"), 80_000)


def test_an_nmi_before_the_timer_is_named() -> None:
    nmi = at(50_000, POINT, NMI, "perf_event_nmi_handler", HOG, 45_000)
    found = taken_apart([*sleeps(-900_000, HOG), nmi, *timer(50_100, HOG), *runs(52_000, HOG)], wakings(50_400), 52_100)
    assert parts(found)["timer", Cause(NMI, "perf_event_nmi_handler")] == 45_000


def test_a_softirq_between_wake_up_and_thread_is_named() -> None:
    soft = [at(1_200, BEGIN, SOFTIRQ, "NET_RX", HOG, 3), at(61_200, END, SOFTIRQ, "NET_RX", HOG, 3)]
    found = taken_apart([*sleeps(-900_000, HOG), *timer(0, HOG), *soft, *runs(62_000, HOG)], wakings(300), 62_100)
    assert found.parts[0] == ("switch", Cause(SOFTIRQ, "NET_RX"), 60_000)


def test_a_task_that_keeps_the_cpu_after_the_wake_up_is_named_as_itself() -> None:
    found = taken_apart([*sleeps(-900_000, HOG, "hog"), *timer(0, HOG), *runs(90_000, HOG)], wakings(300), 90_500)
    phase, cause, took = found.parts[0]
    assert (phase, cause) == ("switch", Cause(THREAD, "hog", "812"))
    assert took > 85_000


def test_a_timer_on_another_cpu_is_distinguished() -> None:
    call = [at(30_000, BEGIN, VECTOR, "reschedule", key=253), at(30_500, END, VECTOR, "reschedule", key=253)]
    events = [*sleeps(-900_000), at(29_900, NOTE, IDLE_NOTE, key=NOT_IDLE), *call, *runs(31_000)]
    found = taken_apart(events, wakings(25_000, cpu=0), 31_400)
    assert found.phases == (25_000, 0, 6_000, 400)
    assert found.parts[0] == ("timer", Cause(OTHER_CPU, "0"), 25_000)
    assert parts(found)["switch", Cause(IDLE, "C1")] == 4_900


def test_a_thread_that_never_slept_was_interrupted_in_its_own_time() -> None:
    device = [at(-500, BEGIN, IRQ, "9 acpi", PID, 9), at(70_000, END, IRQ, "", PID, 9)]
    found = taken_apart([*runs(-900_000), *device], [], 70_100)
    assert found.phases == (0, 0, 0, 70_100)
    assert found.parts[0] == ("return", Cause(IRQ, "9 acpi"), 70_000)


def test_the_last_wake_up_before_the_thread_runs_counts_and_no_other_threads() -> None:
    others = [Waking(DUE + 100, 0, HOG), Waking(DUE - 900_000, CPU, PID)]
    events = [*sleeps(-800_000), at(40_000, NOTE, IDLE_NOTE, key=NOT_IDLE), *timer(40_200), *runs(43_000)]
    assert taken_apart(events, [*others, *wakings(40_500)], 44_000).phases == (40_200, 300, 2_500, 1_000)


def test_a_trace_without_the_thread_explains_nothing() -> None:
    assert dissect([], [], THREAD_3, DUE, DUE + 10, name, LIMITS) is None
    assert dissect([at(0, SWITCH, THREAD, "a", 5, other=6)], [], THREAD_3, DUE, DUE + 10, name, LIMITS) is None


def test_an_idle_state_whose_start_was_not_traced_has_unknown_depth() -> None:
    events = [at(-10, BEGIN, IRQ, "1 x", key=1), at(-5, END, IRQ, key=1), at(40_000, NOTE, IDLE_NOTE, key=NOT_IDLE)]
    found = taken_apart([*events, *timer(40_200), *runs(43_000)], wakings(40_500), 44_000)
    assert found.parts[0].cause == Cause(IDLE, "of unknown depth")


@pytest.mark.parametrize("clock_slip", [-9, 9])
def test_clocks_that_differ_by_a_little_change_nothing_much(clock_slip: int) -> None:
    events = [*sleeps(-900_000), at(0, NOTE, IDLE_NOTE, key=NOT_IDLE), *timer(0 + clock_slip - 9), *runs(3_000)]
    found = taken_apart(events, wakings(clock_slip + 291), 3_500)
    assert found.phases[0] <= 9
    assert parts(found)["switch", Cause(SCHEDULER, "")] > 0


def test_a_kernel_that_does_not_trace_its_idle_task_still_shows_who_ran() -> None:
    """Without a switch from idle or an idle state, the tasks of the other events show it."""
    other = [at(-400_000, BEGIN, IRQ, "1 x", HOG, 1), at(-399_000, END, IRQ, "", HOG, 1)]
    slept = [*sleeps(-900_000)[:1], *other, at(-300_000, SWITCH, THREAD, "swapper", HOG, other=0)]
    found = taken_apart([*slept, *timer(40_000)], wakings(40_300), 44_000)
    assert found.phases == (40_000, 300, 3_700, 0)
    assert found.parts[0] == ("timer", Cause(IDLE, "of unknown depth"), 40_000)


@pytest.mark.parametrize(("virtual", "name"), [(True, HYPERVISOR), (False, OUTSIDE)])
def test_a_long_time_that_the_kernel_does_not_account_for_is_never_firmware_without_proof(
    virtual: bool, name: str
) -> None:
    events = [*sleeps(-900_000), at(0, NOTE, IDLE_NOTE, key=NOT_IDLE), *timer(200), *runs(300_000)]
    found = taken_apart(events, wakings(500), 301_000, replace(LIMITS, virtual=virtual))
    assert found.parts[0][:2] == ("switch", Cause(HOST, name))


def test_a_frame_is_cut_with_those_in_it() -> None:
    frame = Frame(THREAD, "a", 0, 100, inner=[Frame(IRQ, "b", 10, 20), Frame(IRQ, "c", 50, 90)])
    cut = clipped(frame, 60, 80)
    assert cut
    assert (cut.begin, cut.end, [each.name for each in cut.inner], cut.net) == (60, 80, ["c"], 0)
    assert cut.again
    assert clipped(frame, 100, 120) is None
    pulled = Frame(IRQ, "timer", 0, 100, pulled=3)
    assert (cut := clipped(pulled, 0, 50))
    assert (cut.pulled, cut.again) == (3, False)
