"""`cbench doctor` as its user sees it."""

from __future__ import annotations

import json

import pytest

from tests.cbench.running import cbench, error_line


@pytest.mark.slow
def test_wrong_options_are_reported_in_one_line() -> None:
    done = cbench("doctor", "--processes", "3")
    assert done.returncode == 2
    assert "from 4 to 1,000 per side" in error_line(done)
    assert cbench("doctor", "--cpu", "9999").returncode == 2


@pytest.mark.slow
def test_the_quick_answer_is_complete_and_consistent() -> None:
    done = cbench("doctor", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["verdict"].startswith("differences below ")
    processes = result["spread"]["processes"]
    assert processes >= (8 if result["seconds"] < 30 else 4)  # in three times its time, or a few in any case
    assert processes / 2 < len(result["headlines"]) <= processes  # a process on a shared core may have no headline
    visible = result["detectable"]
    assert 0 < visible["low"] <= visible["difference"] <= visible["high"]
    assert len(result["remedies"]) <= 3
    gains = [each["gain"] for each in result["remedies"]]
    assert gains == sorted(gains, reverse=True)
    assert {"counter", "host", "stolen_share", "core", "one_after_the_other", "causes"} <= set(result)
