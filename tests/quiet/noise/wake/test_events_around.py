"""The events around a wake-up: in order, in nanoseconds from when it was due, and no more than can be read."""

from __future__ import annotations

from quiet.noise.call_nesting import BEGIN, END, IRQ, NMI, NOTE, POINT, SWITCH, THREAD, TraceEvent
from quiet.noise.wake.anatomy import IDLE_NOTE, NOT_IDLE, WAKING_NOTE, Thread
from quiet.noise.wake.events_around import BEFORE_NS, MOST_EVENTS, timeline

DUE, AT = 10_000_000, 10_300_000
COMMS = {77: "quiet-wake", 812: "hog"}
THREAD_3 = Thread(3, 77, lambda number: f"C{number}", lambda pid: COMMS.get(pid, ""))


def lines(*events: TraceEvent) -> list[tuple[float, str]]:
    return [tuple(each) for each in timeline(events, THREAD_3, DUE, AT, float)]


def test_every_kind_of_event_is_a_line() -> None:
    found = lines(
        TraceEvent(DUE - 900, SWITCH, THREAD, "hog", 77, other=812),
        TraceEvent(DUE - 800, BEGIN, IRQ, "131 nvme0q1", 812, 131),
        TraceEvent(DUE - 700, END, IRQ, "", 812, 131),
        TraceEvent(DUE + 10, POINT, NMI, "watchdog", 812),
        TraceEvent(DUE + 20, NOTE, WAKING_NOTE, "", 812, other=77),
        TraceEvent(DUE + 30, SWITCH, THREAD, "swapper", 812, other=0),
        TraceEvent(DUE + 40, NOTE, IDLE_NOTE, "", 0, 2),
        TraceEvent(DUE + 50, NOTE, IDLE_NOTE, "", 0, NOT_IDLE),
    )
    assert found == [
        (-900, "switch from quiet-wake (77) to hog (812)"),
        (-800, "IRQ 131 nvme0q1 begins"),
        (-700, "IRQ 131 nvme0q1 ends"),
        (0, "due: the timer should expire now"),
        (10, "NMI: watchdog"),
        (20, "wakes quiet-wake (77)"),
        (30, "switch from hog (812) to idle"),
        (40, "idle state C2 begins"),
        (50, "idle ends"),
        (300_000, "quiet-wake (77) runs in user space"),
    ]


def test_events_long_before_or_after_the_wake_up_are_omitted() -> None:
    far = TraceEvent(DUE - BEFORE_NS - 1, POINT, NMI, "early", 0)
    late = TraceEvent(AT + 1, POINT, NMI, "late", 0)
    assert [text for _, text in lines(far, late)] == [
        "due: the timer should expire now",
        "quiet-wake (77) runs in user space",
    ]


def test_of_many_events_the_last_are_kept() -> None:
    many = [TraceEvent(DUE + number, POINT, NMI, f"n{number}", 0) for number in range(1, 1000)]
    found = lines(*many)
    assert len(found) == MOST_EVENTS
    assert found[-2][1] == "NMI: n999"
