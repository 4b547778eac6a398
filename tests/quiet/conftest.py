"""Shared helpers of the tests of quiet."""

from __future__ import annotations

import pytest

from tests.quiet.commands import Quiet


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Quiet:
    """The command, run in this process."""
    return Quiet(monkeypatch, capsys)
