"""Tests for pytest-xdist to spread: each is busy until the deadline."""

import time

import pytest


@pytest.mark.parametrize("number", range(4))
def test_busy(number: int) -> None:
    end = time.monotonic() + 4
    while time.monotonic() < end:
        pass
