"""Guests take turns on the cores of this machine, tests of one boot stay together, and a failed test can be repeated.

Boots nothing.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests import CHECKOUT
from tests.lab.harness import process


@pytest.mark.slow
def test_a_guest_that_needs_all_cores_runs_alone_and_is_not_starved(tmp_path: Path) -> None:
    inside: list[bool] = []  # those that run now: does it need all cores?
    seen: list[tuple[bool, ...]] = []
    guard = threading.Lock()

    def guest(whole: bool) -> None:
        for _ in range(3):
            with process.room_for_a_guest(tmp_path, whole=whole):
                with guard:
                    inside.append(whole)
                    seen.append(tuple(inside))
                time.sleep(0.02)
                with guard:
                    inside.remove(whole)

    threads = [
        threading.Thread(target=guest, args=(whole,), daemon=True) for whole in (False, False, False, True, True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert len(seen) == 15
    assert {each for each in seen if any(each)} == {(True,)}
    assert max(len(each) for each in seen) <= process.slots()


def test_tests_that_share_a_boot_are_run_by_one_process(request: pytest.FixtureRequest) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ:  # the mark alone does nothing when pytest-xdist sees it too late
        visits = [item.nodeid for item in request.session.items if item.get_closest_marker("visit")]
        assert [name for name in visits if "@visit-" not in name] == []


@pytest.mark.slow
def test_a_failed_test_says_how_to_repeat_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\npytestmark = [pytest.mark.lab, pytest.mark.parametrize('number', [1, 2])]\n\n\n"
        "def test_one(number):\n    assert number == 1\n"
    )
    without = ["-p", "no:cacheprovider", "-p", "no:benchmark"]  # which asks Git about the whole checkout
    options = ["-p", "tests.lab.conftest", *without, "-n", "2", "--dist", "loadgroup"]
    command = [sys.executable, "-m", "pytest", "-c", "/dev/null", "--rootdir", str(tmp_path), *options, str(tmp_path)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, check=False)
    found = re.findall(r"^make setup lab-setup && \.venv/bin/python -m pytest (.*)$", done.stdout, re.MULTILINE)
    assert found == ["'test_it.py::test_one[2]'"], done.stdout
