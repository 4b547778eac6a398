"""Wheels made from what is installed: a node installs them without a registry, and both commands work."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from cbench.fleet import wheels


@pytest.mark.slow
def test_a_new_environment_installs_the_packed_wheels_offline(tmp_path: Path) -> None:
    wheels.pack(tmp_path / "wheels.tar")
    wheels.pack(tmp_path / "again.tar")
    assert (tmp_path / "wheels.tar").read_bytes() == (tmp_path / "again.tar").read_bytes()
    with tarfile.open(tmp_path / "wheels.tar") as tar:
        tar.extractall(tmp_path / "wheels", filter="data")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    install = ["install", "-q", "--no-index", "--find-links", tmp_path / "wheels", "quiet-cbench"]
    subprocess.run([tmp_path / "venv" / "bin" / "pip", *install], check=True)
    for program in ("quiet", "cbench"):
        listed = subprocess.run(
            [tmp_path / "venv" / "bin" / program, "--help"], cwd=tmp_path, capture_output=True, check=False
        )
        assert listed.returncode == 0, listed.stderr
    ran = [tmp_path / "venv" / "bin" / "cbench", "run", "hash", "--quick", "--trials", "5"]
    assert subprocess.run(ran, cwd=tmp_path, check=False).returncode in (0, 1)
    assert list((tmp_path / "venv").rglob("quiet_cbench/bench/galaxy.yml"))
