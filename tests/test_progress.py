"""`-p tests.progress`: the progress display for a person who waits for the tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.progress import area, plain

ROOT = Path(__file__).resolve().parents[1]
TESTS = {
    "tests/quiet/knobs/test_a.py": "def test_one(): pass\ndef test_two(): pass\n",
    "tests/cbench/order/test_b.py": "def test_three(): assert False\n",
}


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ("tests/quiet/knobs/test_swap.py::test_a", "quiet/knobs"),
        ("tests/cbench/order/stats/test_shift.py::test_a[x/y]", "cbench/order"),
        ("tests/lab/cases/test_boot.py::test_a[grub]", "lab/boot"),
        ("tests/test_api.py::test_a", "api"),
    ],
)
def test_an_area_is_a_folder_or_a_case_of_the_lab(node: str, expected: str) -> None:
    assert area(node) == expected


def test_the_group_of_xdist_is_not_part_of_a_test_s_name() -> None:
    assert plain("tests/a.py::test_b[x]@visit-exact") == "tests/a.py::test_b[x]"
    assert plain("tests/a@b.py::test_c") == "tests/a@b.py::test_c"


@pytest.mark.slow
def test_each_area_is_reported_once_and_a_failure_at_once(tmp_path: Path) -> None:
    for name, text in TESTS.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(text)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.progress",
        "-p",
        "no:cacheprovider",
        f"--rootdir={tmp_path}",
    ]
    done = subprocess.run([*command, "tests"], capture_output=True, text=True, check=False, cwd=tmp_path, env=_paths())
    lines = [line.split("] ", 1)[1] for line in done.stdout.splitlines() if line.startswith("[0:")]
    assert lines[0] == "3 tests in 2 areas"
    assert "FAILED tests/cbench/order/test_b.py::test_three (call)" in lines
    assert [line.split(" (")[0] for line in lines if ": " in line] == [
        "cbench/order: 1 failed",
        "quiet/knobs: 2 passed",
    ]
    assert "where the time went" in done.stdout


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
