"""Shared helpers of the tests of quiet.noise."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.quiet.commands import Quiet
from tests.quiet.noise.decoding import Kernel, kernel_with
from tests.quiet.noise.tracing import ARM_6_12, X86, X86_6_1


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


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel_with(tmp_path_factory.mktemp("x86"), X86) as made:
        yield made


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel_with(tmp_path_factory.mktemp("older"), X86_6_1) as made:
        yield made


@pytest.fixture(scope="module")
def arm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with kernel_with(tmp_path_factory.mktemp("arm"), ARM_6_12) as made:
        yield made
