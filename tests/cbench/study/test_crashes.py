"""A study that is cut short in any way: nothing is lost, nothing is repeated, nothing keeps running beside it."""

from __future__ import annotations

import os
import random
import select
import signal
import time
from pathlib import Path

import pytest

from cbench.order import analyze
from cbench.order.analyze import OrderOptions
from cbench.study import lifecycle
from cbench.study.store import StudyStore
from quiet.errors import QuietError
from tests.cbench.study.running import rows, study, written

NUMBER = "sleep 0.01; echo $(( (CBENCH_RUN * 7919 + CBENCH_POSITION * 104729 + %d * 31) %% 1009 ))"
DERIVED = {name: NUMBER % number for number, name in enumerate("abc")}
"""Each trial prints a number that follows from its run, its position and its test."""
MOMENTS = 50


def forked(path: Path, data: Path) -> int:
    """A process in a session of its own that begins or resumes the study; its number.

    Without the start of Python, so that the moments fall into the study.
    """
    begun, begins = os.pipe()
    pid = os.fork()
    if pid:
        os.close(begins)
        os.read(begun, 1)
        os.close(begun)
        return pid
    code = 1
    try:
        os.setsid()
        os.write(begins, b"1")
        os.dup2(os.open(path.with_suffix(".said"), os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
        there = planned(data)
        study_ = lifecycle.ResumeStudy(str(data)) if there else lifecycle.StartStudy(str(path), str(data))
        study_.run(lambda _: None)
        code = 0
    finally:
        os._exit(code)


def planned(data: Path) -> bool:
    """Whether the store holds a study; one killed while creating its store is started again."""
    try:
        with StudyStore.open(data):
            return True
    except QuietError:
        return False


def killed(pid: int, after_s: float, whole_group: bool) -> bool:
    """Kill -9 after a time, of the process alone or of its group; False if it had already ended successfully.

    A trial is in a session of its own either way.
    """
    fd = os.pidfd_open(pid)
    try:
        if not select.select([fd], [], [], after_s)[0]:
            (os.killpg if whole_group else os.kill)(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    finally:
        os.close(fd)
    assert status in (0, -signal.SIGKILL)
    return status != 0


@pytest.mark.slow
def test_kill_9_at_50_random_moments_loses_nothing_and_doubles_nothing(tmp_path: Path) -> None:
    """Each moment is drawn over the time that the whole study takes; a killed process is resumed until it is done."""
    draw = random.Random(20_231_124)
    path = written(tmp_path, study(DERIVED, "repetitions = 4"))
    begun = time.monotonic()
    assert not killed(forked(path, tmp_path / "whole.db"), 60, whole_group=False)
    takes = time.monotonic() - begun
    whole = rows(tmp_path / "whole.db")
    assert len(whole) == 24
    analysis = analyze.analyzed(OrderOptions(str(tmp_path / "whole.db")))
    kills, studies, within = 0, 0, set()
    while kills < MOMENTS:
        data, before = tmp_path / f"{studies}.db", 0
        studies += 1
        while killed(forked(path, data), draw.uniform(0, takes) if kills < MOMENTS else 60, draw.random() < 0.5):
            kills += 1
            done = len(rows(data)) if planned(data) else 0
            assert done >= before
            within.add((studies, done))
            before = done
        assert rows(data) == whole
        assert analyze.analyzed(OrderOptions(str(data))) == analysis
    assert studies > 1
    assert len({done for _, done in within}) > 12  # the moments fell everywhere
