"""The detector itself, on a CPU of this host: its numbers add up, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quiet.errors import Refused, UsageError
from quiet.noise import calibration, clock, detector, pinned
from quiet.noise._noise import lib
from quiet.noise.clock import Clock
from quiet.noise.detector import DetectorRequest, Watched
from quiet.noise.pinned import DetectorError

EVERYTHING = 1  # a threshold, in ticks, that nearly every reading of the loop reaches


@cache
def ticks(seconds: float) -> int:
    first = clock.moment()
    time.sleep(0.02)
    return Clock(first, clock.moment()).ticks(seconds * 1e9)


def go_on(_passed: float) -> bool:
    return False


def watch(cpu: int, asked: DetectorRequest) -> Watched:
    with detector.detectors([cpu], asked) as made:
        made[0].ready()
        pinned.wait(made, 0.2, go_on)
        return made[0].result()


@pytest.mark.slow
def test_the_reported_numbers_add_up(cpu: int) -> None:
    seen = watch(cpu, DetectorRequest(ticks(0.2)))
    assert seen.cpu == cpu
    assert seen.end - seen.begin >= ticks(0.2)
    assert seen.readings > 1000
    assert seen.count == len(seen.gaps) == sum(seen.histogram.values())
    assert seen.lost == sum(gap.length for gap in seen.gaps) <= seen.end - seen.begin
    assert seen.longest == max((gap.length for gap in seen.gaps), default=0)
    assert seen.shortest == min((gap.length for gap in seen.gaps), default=0)
    assert all(gap.length >= seen.threshold for gap in seen.gaps)
    assert seen.threshold == pytest.approx(detector.LOOPS * seen.period, abs=2)
    lows = [lib.qn_bucket_floor(lib.qn_bucket(gap.length)) for gap in seen.gaps]
    assert seen.histogram == {low: lows.count(low) for low in set(lows)}


@pytest.mark.slow
def test_gaps_come_in_order_and_do_not_overlap(cpu: int) -> None:
    seen = watch(cpu, DetectorRequest(ticks(0.1), EVERYTHING, capacity=5_000))
    time_passed = seen.begin
    for gap in seen.gaps:
        assert gap.begin >= time_passed
        time_passed = gap.begin + gap.length
    assert time_passed <= seen.end


@pytest.mark.slow
def test_a_full_ring_keeps_the_first_and_counts_all(cpu: int) -> None:
    seen = watch(cpu, DetectorRequest(ticks(0.1), EVERYTHING, capacity=10))
    assert len(seen.gaps) == 10
    assert seen.count == sum(seen.histogram.values()) > 10
    assert seen.lost > sum(gap.length for gap in seen.gaps)
    assert seen.longest >= max(gap.length for gap in seen.gaps)
    assert all(seen.begin <= gap.begin <= seen.end for gap in seen.gaps)
    assert sum(gap.length for gap in seen.gaps) <= seen.gaps[-1].begin + seen.gaps[-1].length - seen.begin


@pytest.mark.slow
def test_the_time_to_store_a_gap_is_reported_and_is_in_no_gap(cpu: int) -> None:
    seen = watch(cpu, DetectorRequest(ticks(0.05), EVERYTHING, capacity=1_000))
    assert seen.count
    assert seen.looking > 0
    assert seen.lost + seen.looking <= seen.end - seen.begin


@pytest.mark.slow
def test_the_detector_reads_its_own_counters_only_on_request(cpu: int) -> None:
    assert all(not gap.flags for gap in watch(cpu, DetectorRequest(ticks(0.1))).gaps)
    looked = watch(cpu, DetectorRequest(ticks(0.1), EVERYTHING, look=1, capacity=1_000))
    assert looked.gaps
    assert all(gap.flags & lib.QN_LOOKED for gap in looked.gaps)
    assert 0 < looked.looking <= looked.end - looked.begin


@pytest.mark.slow
def test_the_detector_stays_on_its_cpu_and_ignores_the_keyboard(cpu: int) -> None:
    with detector.detectors([cpu], DetectorRequest(ticks(0.1))) as made:
        (one,) = made
        assert os.sched_getaffinity(one.pid) == {cpu}
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            os.kill(one.pid, number)
        one.ready()
        pinned.wait(made, 0.1, go_on)
        assert one.result().pid == one.pid


@pytest.mark.slow
def test_an_interruption_of_its_own_is_seen(cpu: int) -> None:
    with detector.detectors([cpu], DetectorRequest(ticks(0.1))) as made:
        assert made[0].interruption() > 0
        made[0].ready()
        pinned.wait(made, 0.1, go_on)
        assert made[0].result().readings


@pytest.mark.slow
def test_a_page_fault_takes_more_than_a_turn_of_the_loop_and_less_than_a_millisecond(cpu: int) -> None:
    with detector.detectors([cpu], DetectorRequest(ticks(0.1))) as made:
        found = made[0].fault()
        made[0].ready()
        pinned.wait(made, 0.1, go_on)
        assert made[0].result().period < found < ticks(0.001)


def test_each_requested_fault_has_a_length() -> None:
    found = calibration.faults(5)
    assert len(found) == 5
    assert all(length > 0 for length in found)


# In a process of one thread, as a detector is: the timer's signal is the whole process's.
ALONE = """
import signal
from quiet.noise import calibration, detector
handled = []
signal.signal(signal.SIGALRM, lambda number, frame: handled.append(number))
found = calibration.interruptions(3)
assert len(found) == 3 and all(found), found
assert calibration.interruptions(0) == []
assert signal.SIGALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
assert not handled
signal.raise_signal(signal.SIGALRM)
assert handled == [signal.SIGALRM]
"""


def test_interruptions_of_its_own_each_have_a_length_and_leave_the_signals_as_they_were() -> None:
    done = subprocess.run([sys.executable, "-c", ALONE], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_the_detector_ends_early_on_request(cpu: int) -> None:
    with detector.detectors([cpu], DetectorRequest(ticks(3600.0))) as made:
        made[0].ready()
        made[0].go()
        assert made[0].running()
        made[0].stop()
        limit = time.monotonic() + 30
        while made[0].running() and time.monotonic() < limit:
            time.sleep(0.01)
        seen = made[0].result()
        assert seen.end - seen.begin < ticks(3600.0)


@pytest.mark.slow
def test_the_detector_keeps_its_cpu_until_it_is_released(cpu: int) -> None:
    def ended() -> bool:
        return os.waitid(os.P_PID, made[0].pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    with detector.detectors([cpu], DetectorRequest(ticks(0.1))) as made:
        made[0].ready()
        pinned.wait(made, 0.1, go_on)
        time.sleep(0.1)
        assert not ended()
        made[0].leave()
        limit = time.monotonic() + 30
        while not ended() and time.monotonic() < limit:
            time.sleep(0.01)
        assert ended()
        assert made[0].result().readings


@pytest.mark.slow
def test_the_waiting_process_gets_the_elapsed_time(cpu: int) -> None:
    reported: list[float] = []

    def note(passed: float) -> bool:
        reported.append(passed)
        return False

    with detector.detectors([cpu], DetectorRequest(ticks(0.2))) as made:
        made[0].ready()
        pinned.wait(made, 0.2, note)
    assert reported
    assert reported == sorted(reported)
    assert all(0 <= passed <= 0.2 for passed in reported)


@pytest.mark.slow
def test_the_waiting_process_can_end_it_and_gets_the_gaps_so_far(cpu: int) -> None:
    with detector.detectors([cpu], DetectorRequest(ticks(3600.0))) as made:
        made[0].ready()
        pinned.wait(made, 3600.0, lambda passed: passed > 0.3 and made[0].state.begin > 0)
        seen = made[0].result()
    assert 0 < seen.end - seen.begin < ticks(600.0)
    assert seen.readings


@pytest.mark.slow
def test_an_error_in_the_waiting_process_ends_the_detector_before_it_is_raised(cpu: int) -> None:
    def fail(_passed: float) -> bool:
        raise RuntimeError

    with detector.detectors([cpu], DetectorRequest(ticks(3600.0))) as made:
        made[0].ready()
        with pytest.raises(RuntimeError):
            pinned.wait(made, 3600.0, fail)
        assert not made[0].running()
        assert made[0].result().cpu == cpu


def children() -> set[str]:
    """The PIDs of this process's children, also of those that have ended and were not waited for."""
    return {pid for each in Path("/proc/self/task").glob("*/children") for pid in each.read_text().split()}


def exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_no_detector_is_left_whether_it_ran_or_not(cpu: int) -> None:
    with detector.detectors([cpu], DetectorRequest(ticks(0.1))) as made:
        waiting = made[0].pid
    assert not exists(waiting)
    running = 0

    def fail() -> None:
        nonlocal running
        with detector.detectors([cpu], DetectorRequest(ticks(3600.0))) as made:
            made[0].ready()
            made[0].go()
            running = made[0].pid
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert running
    assert not exists(running)


@pytest.mark.slow
def test_no_detector_is_left_when_one_cannot_be_placed(cpu: int) -> None:
    before = set(os.listdir("/proc/self/fd")), children()
    with (
        pytest.raises(DetectorError, match="CPU 60000 is not online"),
        detector.detectors([cpu, 60000], DetectorRequest(1)),
    ):
        pass
    assert (set(os.listdir("/proc/self/fd")), children()) == before


@pytest.mark.slow
@pytest.mark.parametrize("when", ["placed", "ready", "running"])
def test_a_killed_detector_is_an_error_that_names_it(cpu: int, when: str) -> None:
    with detector.detectors([cpu], DetectorRequest(ticks(3600.0))) as made:
        (one,) = made
        if when != "placed":
            one.ready()
        if when == "running":
            one.go()
        os.kill(one.pid, signal.SIGKILL)
        os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
        assert not one.running()
        with pytest.raises(DetectorError, match=f"CPU {cpu}"):
            one.interruption() if when == "placed" else one.result()


@pytest.mark.parametrize("capacity", [0, 1 << 33])
def test_an_impossible_ring_size_is_an_error(cpu: int, capacity: int) -> None:
    with (
        pytest.raises(DetectorError, match="no memory"),
        detector.detectors([cpu], DetectorRequest(1, capacity=capacity)),
    ):
        pass


def test_the_period_and_the_step_of_a_clock_that_advances_by_tens() -> None:
    period, step = calibration.calibrate([20] * 500 + [30] * 490 + [70_000] * 10)
    assert period == pytest.approx((20 * 500 + 30 * 490) / 990)
    assert step == 10


def test_a_tick_may_be_longer_than_the_loop() -> None:
    period, step = calibration.calibrate([0, 0, 1] * 3000 + [900])
    assert period == pytest.approx(1 / 3)
    assert step == 1


@given(st.floats(10, 100), st.integers(1, 3))
@example(10.285720055876482, 3)  # each difference of three is cut, and each of four is not
def test_a_clocks_step_is_found_from_whole_ticks_though_it_is_not_a_whole_number_of_them(
    step: float, least: int
) -> None:
    readings = [
        int(number * step)
        for turn in range(300)
        for number in (turn * 2 * least + turn, turn * 2 * least + turn + least)
    ]
    differences = [b - a for a, b in pairwise(readings)]
    assert calibration.calibrate(differences)[1] == pytest.approx(step, abs=1)


@pytest.mark.parametrize("differences", [[20] * 1000, [20, 21, 22, 23] * 250, [36, 38, 40] * 300, [50, 71, 85] * 300])
def test_differences_that_are_multiples_of_nothing_show_no_step(differences: list[int]) -> None:
    assert calibration.calibrate(differences)[1] == 1


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=200))
def test_the_period_lies_among_the_differences(differences: list[int]) -> None:
    period, step = calibration.calibrate(differences)
    assert min(differences) <= period <= max(differences)
    assert 1 <= step <= max(differences)


def test_the_differences_of_the_real_loop_are_short() -> None:
    period, step = calibration.calibrate(calibration.periods(5_000))
    assert 0 < period < ticks(0.001)
    assert step >= 1


@pytest.mark.parametrize(
    ("cpus", "error", "said"),
    [
        ({9}, UsageError, r"--cpus 9: no such CPU; this host has 0-5"),
        ({2, 7, 8}, UsageError, r"--cpus 7-8: no such CPU"),
        ({2, 4, 5}, UsageError, r"--cpus 4-5: offline; online CPUs: 0-3"),
        ({0, 1, 2, 3}, Refused, r"--cpus 0-3: with --fifo .*leave out at least one"),
    ],
)
def test_cpus_that_cannot_be_watched_are_named(cpus: set[int], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        detector.check_cpus(frozenset(cpus), frozenset(range(4)), frozenset(range(6)), "--cpus", fifo=50)


def test_some_of_the_cpus_can_be_watched_and_all_of_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3})
    detector.check_cpus(frozenset({1, 2, 3}), frozenset(range(4)), frozenset(range(4)), "--cpus", fifo=50)
    detector.check_cpus(frozenset(range(4)), frozenset(range(4)), frozenset(range(4)), "--cpus")
