"""Work that several processes share."""

from __future__ import annotations

import os
import signal

import pytest

from cbench import shared_work
from cbench.shared_work import every


@pytest.fixture(autouse=True)
def three_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """On any host."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})


def test_results_come_in_the_order_of_the_numbers_and_from_several_processes() -> None:
    found = every(lambda number: (number * number, os.getpid()), 10)
    assert [square for square, _ in found] == [number * number for number in range(10)]
    assert len({process for _, process in found}) == 3
    assert found[0][1] == os.getpid()


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_numbers_than_processes_are_not_a_problem(count: int) -> None:
    assert every(str, count) == [str(number) for number in range(count)]


def test_an_error_in_another_process_is_raised_in_the_caller() -> None:
    def failing(number: int) -> int:
        if number == 9:
            raise ValueError("nine")
        return number

    with pytest.raises(ValueError, match="nine"):
        every(failing, 10)


def test_the_part_of_a_killed_process_is_done_by_the_caller() -> None:
    here = os.getpid()

    def killed(number: int) -> int:
        if os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    assert every(killed, 10) == list(range(10))


def test_an_error_here_ends_the_other_processes() -> None:
    here = os.getpid()

    def failing(number: int) -> int:
        if os.getpid() == here:
            raise ValueError("here")
        signal.pause()
        return number

    with pytest.raises(ValueError, match="here"):
        every(failing, 10)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_if_no_process_can_start_the_caller_does_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused() -> int:
        raise BlockingIOError

    monkeypatch.setattr(os, "fork", refused)
    assert every(lambda number: os.getpid(), 10) == [os.getpid()] * 10


def test_one_cpu_needs_no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})
    monkeypatch.setattr(shared_work, "_begin", None)
    assert every(str, 3) == ["0", "1", "2"]
