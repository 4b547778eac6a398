"""Processes that a test of a fleet has left running end with the test: it would disturb others."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cbench.fleet.nodes import Controller, marked
from tests.cbench.running import comes


@pytest.fixture(autouse=True)
def nothing_left(tmp_path: Path) -> Iterator[None]:
    """Also of a test that fails: controllers, the Ansible that they leave, and studies on nodes of this machine."""
    yield

    def ended() -> bool:
        left = marked(tmp_path)
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    assert comes(ended)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Controller]:
    """Start `cbench fleet WORDS` in the test's directory."""
    return lambda *words: Controller(tmp_path, words)
