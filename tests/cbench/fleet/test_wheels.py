"""Wheels made from what is installed: a node installs them without a registry, and both commands work."""

from __future__ import annotations

import platform
import runpy
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from cbench.fleet import wheels
from cbench.fleet.ansible import COLLECTIONS

UNPACK = COLLECTIONS / "ansible_collections/quiet_cbench/bench/roles/install/files/unpack.py"


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


@pytest.mark.parametrize(
    ("tags", "why"),
    [
        ("py3-none-any", ""),
        (f"cp311-abi3-manylinux_2_17_{platform.machine()}", ""),
        (f"cp3{sys.version_info[1]}-cp3{sys.version_info[1]}-linux_{platform.machine()}", ""),
        (f"cp3{sys.version_info[1] + 1}-abi3-linux_{platform.machine()}", "is for a different Python than"),
        (f"cp27-cp27mu-linux_{platform.machine()}", "is for a different Python than"),
        ("py3-none-linux_s390", "is for a different machine than"),
    ],
)
def test_a_node_takes_only_wheels_that_fit_its_python_and_machine(tags: str, why: str) -> None:
    found = runpy.run_path(str(UNPACK))["misfit"](f"a-1.0-{tags}.whl")
    assert found.startswith(why)
    assert bool(found) == bool(why)


@pytest.mark.slow
def test_an_environment_without_pip_unpacks_them_and_has_both_commands(tmp_path: Path) -> None:
    wheels.pack(tmp_path / "wheels.tar")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    subprocess.run([tmp_path / "venv/bin/python", UNPACK, tmp_path / "wheels.tar"], check=True)
    for program in ("quiet", "cbench"):
        listed = subprocess.run(
            [tmp_path / "venv/bin" / program, "--help"], cwd=tmp_path, capture_output=True, check=False
        )
        assert listed.returncode == 0, listed.stderr
    assert (tmp_path / "venv/installed").exists()
