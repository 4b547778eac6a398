"""What is kept of the trace lies around the worst wake-ups, from before the CPU went idle ahead of each."""

from __future__ import annotations

from quiet.noise.call_nesting import NOTE
from quiet.noise.wake.anatomy import IDLE_NOTE, NOT_IDLE, WAKING_NOTE
from quiet.noise.wake.sleeper import WakeUp
from quiet.noise.wake.trace import TRACED, waking_of, window
from tests.quiet.noise.making import CLOCK


def test_a_window_begins_before_the_due_time_and_ends_after_the_wake_up() -> None:
    since, until = window(WakeUp(300_000, 50_000_000, 7), CLOCK, 1_000_000)
    assert since == 50_000_000 - 300_000 - 2_500_000
    assert until > 50_000_000


def test_with_a_long_period_it_reaches_back_to_the_sleep_before() -> None:
    since, _ = window(WakeUp(300_000, 5_000_000_000, 7), CLOCK, 1_000_000_000)
    assert since < 5_000_000_000 - 1_000_000_000


def test_idle_states_and_wakings_are_notes_and_no_frames() -> None:
    made = {kind.name: kind.make for kind in TRACED if kind.name in ("cpu_idle", "sched_waking")}
    entered, left = (made["cpu_idle"](5, 0, (state,), str) for state in (2, 0xFFFFFFFF))
    assert entered
    assert left
    assert (entered.action, entered.kind, entered.key, left.key) == (NOTE, IDLE_NOTE, 2, NOT_IDLE)
    woken = made["sched_waking"](5, 0, (77,), str)
    assert woken
    assert (woken.action, woken.kind, woken.other) == (NOTE, WAKING_NOTE, 77)


def test_on_every_cpu_only_the_wakings_of_the_own_threads_are_traced() -> None:
    assert waking_of([7, 9]).filter == "pid == 7 || pid == 9"
