"""A study on a machine that boots as a host does: it is rebooted before each run, and resumes by itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests import CHECKOUT
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab, pytest.mark.parametrize("machine", ["host"], indirect=True)]
SCRIPT = (CHECKOUT / "tests/lab/guest/host.sh").read_text()
TIMEOUT_S = 900


@once
def booted(machine: Machine) -> Result:
    return boot(machine, SCRIPT, timeout=TIMEOUT_S)


def files(machine: Machine) -> dict[str, str]:
    assert booted(machine).code == 0, booted(machine).output
    return booted(machine).files


def stored(machine: Machine, study: str, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(files(machine)["stores.json"])[study][f"study_{table}"]
    return found


def test_each_run_has_its_own_boot_and_the_study_finishes_by_itself(machine: Machine) -> None:
    assert json.loads(files(machine)["status.json"])["finished"], booted(machine).output
    assert int(files(machine)["boots"]) == 3  # the first one, and one for each of two runs
    runs = stored(machine, "the study.db", "run")
    resets = [json.loads(run["reset"]) for run in runs]
    assert len({reset["boot_id"] for reset in resets}) == len(runs) == 2
    assert resets[1]["boot_id_before"] == resets[0]["boot_id"]
    assert resets[1]["boot_id"] == files(machine)["boot_id"].strip()


def test_trials_run_in_the_boot_of_their_run_and_each_of_them_once(machine: Machine) -> None:
    boots = {run["run"]: json.loads(run["reset"])["boot_id"] for run in stored(machine, "the study.db", "run")}
    trials = stored(machine, "the study.db", "trial")
    assert sorted((trial["run"], trial["position"]) for trial in trials) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    for trial in trials:
        assert trial["output"].splitlines()[0] == boots[trial["run"]]
        assert trial["failure"] is None


def test_a_run_begins_when_the_boot_is_over(machine: Machine) -> None:
    came_up = [json.loads(run["reset"])["came_up"] for run in stored(machine, "the study.db", "run")]
    assert came_up == ["running", "running"]


def test_the_resuming_unit_is_removed_when_the_study_has_finished(machine: Machine) -> None:
    assert "lab.service" in files(machine)["units"]
    assert "cbench-study" not in files(machine)["units"]


def test_a_service_is_restarted_before_each_run_and_never_the_same_process_twice(machine: Machine) -> None:
    assert files(machine)["memcached.code"].strip() == "0", booted(machine).output
    runs = stored(machine, "memcached.db", "run")
    resets = [json.loads(run["reset"]) for run in runs]
    assert len(runs) == 4
    assert len({reset["main_pid"] for reset in resets}) == 4
    starts = [int(reset["active_since_us"]) for reset in resets]
    assert starts == sorted(set(starts))
    assert [trial["failure"] for trial in stored(machine, "memcached.db", "trial")] == [None] * 12


def test_after_a_restart_nothing_of_the_run_before_is_in_the_cache(machine: Machine) -> None:
    trials = stored(machine, "memcached.db", "trial")
    values = stored(machine, "memcached.db", "value")
    first = {(trial["run"], trial["position"]): trial["test"] for trial in trials if trial["position"] == 0}
    hits = {(each["run"], each["position"]): each["value"] for each in values if each["metric"] == "hits"}
    of_get_first = [hits[place] for place, test in first.items() if test == 1]
    assert all(value == 0 for value in of_get_first)
    # In the fixed order `set` has run before (it draws its keys, and leaves one in seven out).
    kinds = {run["run"]: run["kind"] for run in stored(machine, "memcached.db", "run")}
    fixed = [value for (run, position), value in hits.items() if kinds[run] == "fixed" and position == 1]
    assert fixed
    assert all(value > 80 for value in fixed)


def test_runs_with_a_missing_service_are_skipped_with_the_reason(machine: Machine) -> None:
    runs = stored(machine, "none.db", "run")
    assert all("nobody-has.service" in run["failure"] and run["failure"].startswith("not reset") for run in runs)
    assert stored(machine, "none.db", "trial") == []
    assert files(machine)["none.code"].strip() == "2"
    assert "nothing was measured" in files(machine)["none.err"]
