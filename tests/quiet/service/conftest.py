"""A host with systemd, a profile of its user, and a program that only root can change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.quiet.service.units import MINE, PROGRAM, UNITS, VENV
from tests.trees import machine, plant


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A host with systemd, and a directory of links as on any."""
    return plant(tmp_path / "root", {**machine(4), f"{UNITS}/multi-user.target.wants/": "", "run/": ""})


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.toml"
    path.write_text(MINE)
    return path


@pytest.fixture
def program(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A virtual environment below the root, from which this `quiet` seems to run; all of it root's."""
    plant(root, PROGRAM | {"usr/bin/": ""})
    (root / VENV / "bin/python").symlink_to("python3.11")
    monkeypatch.setattr("sys.executable", f"/{VENV}/bin/python")
    monkeypatch.setattr("site.getsitepackages", lambda: [f"/{VENV}/lib/site"])
    monkeypatch.setattr("quiet.__file__", f"/{VENV}/lib/quiet/__init__.py")
    for path in [root, *root.rglob("*")]:
        os.chown(path, 0, 0, follow_symlinks=False)
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o022)
    return root / VENV
