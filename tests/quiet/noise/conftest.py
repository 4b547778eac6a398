"""What the tests of quiet.noise share."""

from __future__ import annotations

import os

import pytest

from tests.quiet.commands import Quiet


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Quiet:
    """The command, run in this process."""
    return Quiet(monkeypatch, capsys)


@pytest.fixture
def cpu() -> int:
    """A CPU of this host that may be watched: one is left for the rest."""
    mine = os.sched_getaffinity(0)
    if len(mine) < 2:
        pytest.skip("NOT RUN: watching a CPU needs a second one for the rest of the system")
    return max(mine)
