"""Counts of this process's own interruptions."""

from __future__ import annotations

import os
import time

from cbench.plugins.own_process import OwnCounts, OwnInterruptions, added

FEW = OwnInterruptions(1, 0, 2_000_000, 10, {"LOC (Local timer interrupts)": 3})


def test_a_process_that_is_preempted_counts_it_and_waits() -> None:
    cpu = min(os.sched_getaffinity(0))
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    rival = os.fork()
    if not rival:
        while True:
            pass
    counts = OwnCounts()
    try:
        counts.begin()
        seen = counts.end()
        until = time.monotonic() + 60
        while not seen.preempted and time.monotonic() < until:  # at the latest after a slice of the scheduler
            seen = counts.end()
    finally:
        counts.close()
        os.kill(rival, 9)
        os.waitpid(rival, 0)
        os.sched_setaffinity(0, before)
    assert seen.preempted
    assert seen.disturbed
    assert "preempted" in seen.text


def test_two_times_are_added_and_an_unknown_one_stays_unknown() -> None:
    both = added(FEW, OwnInterruptions(2, 1, 1_000_000, None, {"RES (Rescheduling interrupts)": 1}))
    assert (both.preempted, both.major_faults, both.waited_ns, both.stolen_ms) == (3, 1, 3_000_000, None)
    assert both.interrupts == {"LOC (Local timer interrupts)": 3, "RES (Rescheduling interrupts)": 1}


def test_the_text_names_the_interruptions_and_is_empty_without_any() -> None:
    assert FEW.text == (
        "preempted once; waited for a CPU for 2 ms; the hypervisor stole 10 ms from its CPUs; "
        "interrupt LOC (Local timer interrupts) 3 times"
    )
    assert OwnInterruptions(0, 0, 0, 0).text == ""
    assert not OwnInterruptions(0, 0, 5_000, 0).disturbed
