"""The JSON shapes: their keys are promised, and so are the types behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.quiet.commands import Quiet
from tests.quiet.kernels import tree

CHANGE = {"knob": str, "target": str, "current": (str, type(None)), "wanted": str, "why": str}
SKIP = {"knob": str, "target": str, "reason": str}
CPUS = {"isolated": str, "housekeeping": str}


def has(found: dict[str, Any], shape: dict[str, Any]) -> None:
    for key, kind in shape.items():
        assert isinstance(found[key], kind), key


@pytest.fixture
def root(tmp_path: Path) -> Path:
    found = tree(tmp_path / "machine")
    (found / "proc/irq/1/smp_affinity_list").chmod(0o444)
    (tmp_path / "mine.toml").write_text(
        '[cpus]\nisolated = "3"\n[knobs]\nirq = "quiet"\nthp = "quiet"\nksm = "quiet"\n[boot]\nwanted = ["nohz_full=3"]'
    )
    return found


@pytest.fixture
def mine(root: Path) -> tuple[str, ...]:
    return ("--root", str(root), "--profile", str(root.with_name("mine.toml")), "--json")


def test_the_plan_has_its_documented_json(quiet: Quiet, mine: tuple[str, ...]) -> None:
    made = quiet("plan", *mine).json
    has(made, {"profile": str, "cpus": dict, "changes": list, "skips": list, "boot": dict})
    has(made["cpus"], CPUS)
    assert (made["cpus"]["isolated"], made["cpus"]["housekeeping"]) == ("3", "0-2")
    assert made["changes"]
    assert made["skips"]
    for change in made["changes"]:
        has(change, CHANGE)
    for skip in made["skips"]:
        has(skip, SKIP)
    assert made["boot"] == {"missing": ["nohz_full=3"]}


def test_a_change_has_plain_values(quiet: Quiet, root: Path, mine: tuple[str, ...]) -> None:
    (root / "sys/kernel/mm/transparent_hugepage/enabled").write_text("[always] madvise never\n")
    changes = {change["knob"]: change for change in quiet("plan", *mine).json["changes"]}
    assert (changes["thp"]["current"], changes["thp"]["wanted"]) == ("always", "madvise")


def test_a_target_to_be_created_has_no_current_value(quiet: Quiet, root: Path) -> None:
    changes = quiet("plan", "--root", root, "--json").json["changes"]
    assert [change["current"] for change in changes if change["target"] == "cgroup:/quiet"] == [None]


def test_verify_has_its_documented_json(quiet: Quiet, mine: tuple[str, ...]) -> None:
    before = quiet("verify", *mine).json
    has(before, {"quiet": bool, "drift": list})
    assert not before["quiet"]
    for change in before["drift"]:
        has(change, CHANGE)
    quiet("apply", *mine)
    after = quiet("verify", *mine).json
    assert (after["quiet"], after["drift"], after["applied"]) == (True, [], True)
    assert "noise" in after


def test_apply_and_restore_have_their_documented_json(quiet: Quiet, root: Path, mine: tuple[str, ...]) -> None:
    done = quiet("apply", *mine).json
    has(done, {"profile": str, "cpus": dict, "changes": list, "skips": list, "failures": list, "boot": dict})
    for change in done["changes"]:
        has(change, CHANGE)
    (root / "sys/kernel/mm/ksm/run").write_text("2\n")
    outcome = quiet("restore", "--root", root, "--json").json
    has(outcome, {"profile": str, "complete": bool, "restored": int, "gone": list, "conflicts": list, "failures": list})
    assert [skip["target"] for skip in outcome["conflicts"]] == ["file:/sys/kernel/mm/ksm/run"]
    has(outcome["conflicts"][0], SKIP)


def test_the_status_has_its_documented_json(quiet: Quiet, root: Path, mine: tuple[str, ...]) -> None:
    free = quiet("status", "--root", root, "--json").json
    assert free["applied"] is None
    has(free["cpus"], {"online": str, "offline": str, "cores": list, "nodes": dict, "boot_isolated": str})
    assert free["cpus"]["cores"] == ["0,2", "1,3"]
    assert free["can"]["cpuset partitions"] == "yes (cgroup v2)"
    quiet("apply", *mine)
    applied = quiet("status", "--root", root, "--json").json["applied"]
    assert (applied["profile"], applied["cpus"]["isolated"], applied["complete"]) == ("mine.toml", "3", True)
    assert applied["targets"] == 4


def test_explain_and_profiles_have_their_documented_json(quiet: Quiet) -> None:
    knobs = quiet("explain", "--json").json["knobs"]
    for knob in knobs:
        has(knob, {"name": str, "title": str, "why": str, "doc": str, "targets": str, "choices": list, "after": list})
    interval = next(knob for knob in knobs if knob["name"] == "vm.stat_interval")
    assert interval["choices"] == ["quiet", "leave", "NUMBER"]
    for profile in quiet("profiles", "--json").json["profiles"]:
        has(profile, {"name": str, "summary": str, "knobs": dict})
