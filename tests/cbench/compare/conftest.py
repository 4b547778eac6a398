"""Two stores of one test, the second 3 % slower."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cbench.store.storing import noisy, stored


@pytest.fixture
def a(tmp_path: Path) -> Path:
    return stored(tmp_path / "a.db", noisy(1e6, 8, 40, seed=1))


@pytest.fixture
def b(tmp_path: Path) -> Path:
    return stored(tmp_path / "b.db", noisy(1.03e6, 8, 40, seed=2))
