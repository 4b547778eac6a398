"""`cbench fleet` from the first command to the last, on hosts that are folders."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from pathlib import Path

import pytest

from cbench.fleet import run, state
from quiet import QuietError, UsageError
from tests.cbench.fleet.nodes import BIN, fleet, hosts, inventory, once, study
from tests.cbench.running import CBENCH, error_line


@pytest.mark.slow
def test_a_fleet_runs_is_fetched_and_leaves_nothing_on_its_nodes(tmp_path: Path) -> None:
    study(tmp_path)
    inventory(tmp_path)
    result = json.loads(fleet(tmp_path, "run", "-i", "hosts.json", "s.toml", "-o", "out", "--json").stdout)
    assert {node["state"] for node in result["nodes"].values()} == {"released"}
    for name in ("n0", "n1"):
        once(tmp_path / "out" / "results" / f"{name}.db", 12)
    assert list((tmp_path / "nodes").iterdir()) == []
    assert sorted(each.name for each in (tmp_path / "out" / "results").iterdir()) == ["n0.db", "n1.db"]
    fleet(tmp_path, "resume", "-o", "out")


@pytest.mark.slow
def test_a_controller_killed_again_and_again_loses_and_repeats_no_trial_and_releases(tmp_path: Path) -> None:
    allocated = tmp_path / "allocated"
    (tmp_path / "printed.json").write_text(json.dumps(hosts(tmp_path)))
    more = 'allocate = "echo $FLEET_ID >>allocated; cat printed.json"\nrelease = "rm allocated"\n'
    study(tmp_path, repetitions=40, more=more)
    drawn = random.Random(7)
    for _ in range(4):
        controller = subprocess.Popen([*CBENCH, "fleet", "run", "s.toml", "-o", "out"], cwd=tmp_path)
        try:
            controller.wait(drawn.uniform(0.5, 9))
        except subprocess.TimeoutExpired:
            controller.send_signal(signal.SIGKILL)
            controller.wait()
    fleet(tmp_path, "run", "s.toml", "-o", "out", code=None)
    if allocated.exists():
        fleet(tmp_path, "release", "-o", "out", code=None)
    for name in ("n0", "n1"):
        once(tmp_path / "out" / "results" / f"{name}.db", 160)
    assert not allocated.exists()
    assert list((tmp_path / "nodes").iterdir()) == []


@pytest.mark.slow
def test_nodes_are_released_days_later_and_when_allocating_fails(tmp_path: Path) -> None:
    study(tmp_path, more='allocate = "touch allocated; exit 7"\nrelease = "rm allocated"\n')
    assert "fleet.allocate: exit code 7" in error_line(fleet(tmp_path, "run", "s.toml", "-o", "out", code=2))
    assert not (tmp_path / "allocated").exists()


def test_what_is_wrong_with_a_fleet_is_one_line(tmp_path: Path) -> None:
    file = str(study(tmp_path))
    assert "name an inventory (-i)" in error_line(fleet(tmp_path, "plan", "s.toml", code=2))
    with pytest.raises(UsageError, match="no fleet here"):
        state.existing(tmp_path)
    study(tmp_path, more="wrong = 1\n")
    with pytest.raises(UsageError, match=r"s\.toml:14: fleet.wrong: unknown"):
        run.plan(None, file)
    (tmp_path / "c.toml").write_text('[fleet]\ncommand = "rm -rf x"\n')
    with pytest.raises(UsageError, match="must be `cbench run"):
        run.plan(None, str(tmp_path / "c.toml"))
    (tmp_path / "fleet.json").write_text("{")
    with pytest.raises(QuietError, match="cannot be read"):
        state.existing(tmp_path)


def test_the_state_is_the_same_after_reading_it_back(tmp_path: Path) -> None:
    before = state.FleetState("1", "s.toml", "hosts").with_node("n", state.NodeState(trials_done=3))
    state.store(tmp_path, before)
    assert state.load(tmp_path) == before
    assert os.access(BIN, os.X_OK)
