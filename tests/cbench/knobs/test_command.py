"""`cbench screen knobs` as its user sees it, without root: the plan, refusals, and a screening that has ended."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from cbench.knobs import run, stored, table
from cbench.knobs.options import KnobOptions
from quiet import load_profile
from tests.cbench.knobs.simulated import SimulatedHost
from tests.cbench.knobs.test_run import conducted, plan_of
from tests.cbench.running import cbench

PLANNED = {
    *("profile", "cpus", "response", "knobs", "fixed", "idle", "boot_left_out", "most_applications", "duration_s"),
    *("budget_s", "planning_s", "expected"),
}
KEYS = {
    *("profile", "cpus", "response", "unit", "command", "screened", "fixed", "idle", "boot_left_out", "applications"),
    *("seconds", "finished", "full", "none", "deviation", "smallest", "alpha", "within", "effects", "inert"),
    *("undecided", "conflicts", "written", "check", "refused", "seed"),
}


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    """A screening of three real knobs and others, with one that two need and two that matter."""
    from cbench.knobs.design import ScreenedKnob

    names = ("cpuset", "irq", "vm.stat_interval", "vm.compaction", "swap.cgroup", "thp.scan", "rcu.normal", "workqueue")
    plan = plan_of([ScreenedKnob(name, "cpuset" if name == "swap.cgroup" else "") for name in names])
    choices = {name: "120" if name == "vm.stat_interval" else "quiet" for name in names}
    plan = run.KnobPlan(**{name: getattr(plan, name) for name in plan.__dataclass_fields__} | {"choices": choices})
    host = SimulatedHost([(frozenset({name}), 4.0) for name in ("vm.stat_interval", "swap.cgroup")], noise=0.01)
    path = tmp_path / "knobs.db"
    conducted(path, stored.StoredScreening.new(KnobOptions(), plan), host)
    return path


@pytest.mark.slow
def test_the_plan_shows_the_design_and_changes_nothing() -> None:
    done = cbench("screen", "knobs", "--plan", "--json")
    if done.returncode == 3:  # a machine on which nothing can be isolated
        assert done.stderr.count("\n") == 1
        return
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert set(content) == PLANNED
    assert content["most_applications"] == 40
    assert [each["matter"] for each in content["expected"]][:2] == [0, 1]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may")
def test_without_root_one_line_and_exit_3(tmp_path: Path) -> None:
    done = cbench("screen", "knobs", "-o", str(tmp_path / "k.db"))
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "k.db").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--response", "speed"], "choose one of"),
        (["--within", "a bit"], "write a percentage such as 5%"),
        (["--only", "nonesuch"], "unknown knob"),
        (["--resume", "nonesuch.db"], "no such file"),
        (["--resume", "x.db", "--seed", "3"], "omit --seed"),
        (["--write-profile", "mine.txt"], "must end with .toml"),
        (["--profile", "nonesuch", "--plan"], "no such profile"),
    ],
)
def test_wrong_words_get_one_line_and_exit_2(words: list[str], said: str) -> None:
    done = cbench("screen", "knobs", *words)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_screening_that_has_ended_is_shown_with_profile_and_page(ended: Path, tmp_path: Path) -> None:
    mine, page = tmp_path / "mine.toml", tmp_path / "page.html"
    words = ["--resume", str(ended), "--write-profile", str(mine), "--report", str(page)]
    done = cbench("screen", "knobs", *words)
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first.startswith("2 of 8 knobs of profile bench matter for the lost share")
    assert "conflict: swap.cgroup must not be applied without cpuset" in done.stdout
    assert dict(load_profile(str(mine)).knobs) == {"cpuset": "quiet", "vm.stat_interval": "120", "swap.cgroup": "quiet"}
    text = page.read_text()
    assert text.lower().startswith("<!doctype html")
    assert "vm.stat_interval" in text
    assert "<svg" in text


def test_json_has_all_keys(ended: Path) -> None:
    done = cbench("screen", "knobs", "--resume", str(ended), "--json")
    content = json.loads(done.stdout)
    assert set(content) == KEYS
    assert content["written"] == ["cpuset", "vm.stat_interval", "swap.cgroup"]
    assert {each["verdict"] for each in content["effects"]} == {"matters", "needed"}
    assert content["finished"] is True


def test_a_damaged_store_gets_one_line(ended: Path) -> None:
    with sqlite3.connect(ended) as store:
        store.execute("UPDATE trial SET counts = '{}' WHERE position = 2")
    done = cbench("screen", "knobs", "--resume", str(ended))
    assert done.returncode == 2
    assert "damaged" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_words_for_each_outcome_of_the_verification(ended: Path) -> None:
    from dataclasses import replace

    result = run.resume(ended, lambda *_: None, lambda _: None)
    for outcome in ("within", "no difference shown", "noisier", "quieter"):
        words = table.verified(replace(result, check=replace(result.check, outcome=outcome)))
        assert words.startswith("smallest profile: 3 knobs, ")
    assert "NOISIER" in table.verified(replace(result, check=replace(result.check, outcome="noisier")))
