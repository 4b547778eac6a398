"""A real command is observed by the kernel's counts: the CPUs that it used, and its interruptions."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict

import pytest

from quiet.host.host import Host
from quiet.noise.attribute import FIRMWARE, NOT_SMI, OUTSIDE
from quiet.noise.command_tasks import CommandTasks, task_times
from quiet.noise.interruptions import COUNTS, Interruptions
from quiet.noise.observe import Observer, pauses_name

CPU = min(os.sched_getaffinity(0))


def spin(cpu_s: float) -> None:
    while time.process_time() < cpu_s:
        pass


@contextmanager
def forked(work: Callable[[], None]) -> Iterator[int]:
    """A process on CPU that works after it got a byte (see observed), or at once."""
    pid = os.fork()
    if not pid:
        os.sched_setaffinity(0, {CPU})
        work()
        os._exit(0)
    try:
        yield pid
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def observed(
    work: Callable[[], None], cpus: frozenset[int] | None = None, rest: Callable[[], None] = lambda: time.sleep(0.02)
) -> Interruptions:
    begin, go = os.pipe()

    def after_start() -> None:
        os.read(begin, 1)
        os._exit(work() or 0)

    with forked(after_start) as pid:
        observer = Observer(Host(), cpus or frozenset(os.sched_getaffinity(0)), CommandTasks(Host(), pid), trace=False)
        observer.start()
        os.write(go, b"g")
        while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            rest()
            observer.tick()
        result = observer.finish()
    os.close(begin)
    os.close(go)
    return result


def test_a_busy_command_is_observed_on_its_cpu_by_counts() -> None:
    result = observed(lambda: spin(0.1))
    assert result.method == COUNTS
    assert result.cpus_used == (CPU,)
    assert result.count == sum(cause.count for cause in result.causes)
    assert "not requested" in result.limits[0]


def test_the_observer_is_named_as_such_and_has_no_knob() -> None:
    mine = os.sched_getaffinity(0)

    def busy() -> None:
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            pass

    os.sched_setaffinity(0, {CPU})
    try:
        result = observed(lambda: spin(0.1), rest=busy)
    finally:
        os.sched_setaffinity(0, mine)
    (own,) = (cause for cause in result.causes if cause.cause == f"quiet itself ({os.getpid()})")
    assert own.knob is None
    assert own.remedy.startswith("quiet's own observation; ")


@pytest.mark.slow
def test_a_task_that_competes_is_named_with_its_number() -> None:
    with forked(lambda: spin(1e9)) as rival:
        result = observed(lambda: spin(0.1))
        named = [cause for cause in result.causes if cause.cause.endswith(f"({rival})")]
    assert [cause.knob for cause in named] == ["cpuset"]
    assert named[0].count > 0
    assert (named[0].total_ns or 0) > 0


def test_the_commands_own_children_are_not_named() -> None:
    read_end, write_end = os.pipe()

    def with_child() -> None:
        child = os.fork()
        if not child:
            os.write(write_end, str(os.getpid()).encode())
            spin(0.1)
            os._exit(0)
        spin(0.1)
        os.waitpid(child, 0)

    result = observed(with_child)
    child = os.read(read_end, 20).decode()
    assert not [cause for cause in result.causes if cause.cause.endswith(f"({child})")]


def test_a_cause_that_only_counts_know_has_no_length() -> None:
    counted = [cause for cause in observed(lambda: spin(0.1)).causes if cause.kind != "thread"]
    assert counted
    assert all(cause.total_ns is None and cause.max_ns is None for cause in counted)


def test_a_command_that_moves_to_another_cpu_is_observed_on_the_watched_ones_only() -> None:
    others = frozenset(os.sched_getaffinity(0)) - {CPU}
    if not others:
        pytest.skip("one CPU")
    assert CPU not in observed(lambda: spin(0.1), others).cpus_used


def test_the_result_has_plain_values() -> None:
    assert set(asdict(observed(lambda: spin(0.02)))) >= {"count", "causes", "frequency", "steal_ns", "method"}


def test_a_task_that_has_ended_has_no_times() -> None:
    pid = os.fork()
    if not pid:
        os._exit(0)
    os.waitpid(pid, 0)
    assert task_times(Host(), pid) is None
    own = task_times(Host(), os.getpid())
    assert own is not None
    assert own.run_ns > 0


def waited_ns(pid: int) -> int:
    times = task_times(Host(), pid)
    assert times is not None
    return times.wait_ns


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "timed"), [(0.3, False), (1.05, True)])
def test_chains_are_timed_only_after_a_command_of_a_second(seconds: float, timed: bool) -> None:
    def work() -> None:
        spin(0.02)
        time.sleep(seconds)

    for _ in range(3 if timed else 1):  # on a core that is shared all the time no chains may agree
        source = observed(work).frequency.source
        if source.startswith("chains of additions"):
            break
    if timed and (" of the command" in source or " of its CPUs" in source):
        pytest.skip(f"measured by counters here: {source}")
    assert source.startswith("chains of additions") is timed


def test_waiting_before_the_command_started_is_not_counted() -> None:
    with forked(lambda: spin(1e9)) as pid, forked(lambda: spin(1e9)):
        while waited_ns(pid) < 20_000_000:
            time.sleep(0.02)
        before = waited_ns(pid)
        observer = Observer(Host(), frozenset({CPU}), CommandTasks(Host(), pid), trace=False)
        observer.start()
        result = observer.finish()
        since = waited_ns(pid) - before
    assert (result.total_ns or 0) <= since


@pytest.mark.parametrize(("smis", "name"), [(None, OUTSIDE), (0, NOT_SMI), (2, OUTSIDE), (3, FIRMWARE), (9, FIRMWARE)])
def test_pauses_are_attributed_to_firmware_only_if_as_many_smis_were_counted(smis: int | None, name: str) -> None:
    assert pauses_name(3, smis) == name
