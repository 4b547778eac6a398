"""Applications on a recorded machine: each is the profile without some knobs, and everything is restored."""

from __future__ import annotations

from pathlib import Path

import pytest

import quiet
from cbench.knobs.host import KnobHost, KnobPlan, planned, toml
from cbench.knobs.options import KnobOptions
from quiet import Host, Reader, Refused, UsageError, applied_state, load_profile
from tests.hosts import FOLDER, unpack

LOCKED = "/proc/sys/vm/compact_unevictable_allowed"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return unpack(FOLDER / "isolated-6.12.tar.gz", tmp_path / "host")


def plan_on(root: Path, **options: object) -> KnobPlan:
    return planned(KnobOptions(cpus="2-3", **options), Reader(str(root)))  # type: ignore[arg-type]


def test_the_knobs_that_the_plan_would_change_are_screened(root: Path) -> None:
    plan = plan_on(root)
    changes = quiet.plan("bench", cpus="2-3", root=str(root)).changes
    assert [knob.name for knob in plan.screened] == list(dict.fromkeys(change.knob for change in changes))
    assert len(plan.screened) > 10
    assert plan.isolated == "2-3"
    assert plan.fixed == ()


@pytest.mark.slow
def test_only_leaves_the_other_knobs_applied_and_without_drops_one(root: Path) -> None:
    plan = plan_on(root, only=("vm.compact_unevictable", "vm.compaction"), without=("ksm", "irq"))
    assert {knob.name for knob in plan.screened} == {"vm.compact_unevictable", "vm.compaction"}
    assert "tasks" in plan.fixed
    assert "irq" not in plan.choices
    assert set(plan.as_profile(frozenset({"vm.compaction"}), "x").knobs) == {*plan.fixed, "vm.compact_unevictable"}


def test_a_knob_that_would_change_nothing_cannot_be_screened(root: Path) -> None:
    with pytest.raises(UsageError, match=r"--only cpufreq\.governor: no cpufreq driver"):
        plan_on(root, only=("cpufreq.governor",))
    with pytest.raises(Refused, match="nothing to screen"):
        plan_on(root, without=tuple(knob.name for knob in plan_on(root).screened))


def test_an_application_applies_the_other_knobs_and_restores_the_host(root: Path) -> None:
    plan, host = plan_on(root, only=("vm.compact_unevictable", "vm.compaction", "thp.scan")), Host(str(root))
    plan = plan_on(root, only=plan_names(plan), without=tuple(name for name in plan.fixed))
    before = (root / LOCKED[1:]).read_text()
    knob_host = KnobHost(plan, "1", host)
    with knob_host.applied(frozenset({"vm.compaction"})):
        record = applied_state(host)
        assert record is not None
        assert {entry.knob for entry in record.entries.values()} == {"vm.compact_unevictable", "thp.scan"}
        assert (root / LOCKED[1:]).read_text().strip() == "0"
    assert (root / LOCKED[1:]).read_text() == before
    assert applied_state(host) is None


def plan_names(plan: KnobPlan) -> tuple[str, ...]:
    return tuple(knob.name for knob in plan.screened)


def test_without_any_knob_nothing_is_applied(root: Path) -> None:
    plan = plan_on(root)
    with KnobHost(plan, "1", Host(str(root))).applied(frozenset(plan_names(plan))):
        assert applied_state(Host(str(root))) is None


def test_settings_left_by_a_killed_process_are_restored_and_an_applied_profile_is_refused(root: Path) -> None:
    names = ("vm.compact_unevictable", "vm.compaction")
    plan = plan_on(root, only=names, without=tuple(plan_on(root, only=names).fixed))
    host, before = Host(str(root)), (root / LOCKED[1:]).read_text()
    block = KnobHost(plan, "1", host).applied(frozenset())
    block.__enter__()  # and killed
    with pytest.raises(Refused, match="is applied to this host"):
        KnobHost(plan, "2", host).restore_left_behind()
    assert KnobHost(plan, "1", host).restore_left_behind() is True
    assert (root / LOCKED[1:]).read_text() == before
    assert KnobHost(plan, "1", host).restore_left_behind() is False


def test_the_written_profile_is_one_that_quiet_plans_with(root: Path, tmp_path: Path) -> None:
    plan = plan_on(root)
    path = tmp_path / "mine.toml"
    kept = ("cpuset", "vm.compact_unevictable", "irq.default")
    path.write_text(toml(plan, kept, 'mi"ne', "3 of 20 knobs"))
    profile = load_profile(str(path))
    assert dict(profile.knobs) == {"cpuset": "quiet", "vm.compact_unevictable": "quiet", "irq.default": "quiet"}
    planned_now = quiet.plan(profile, root=str(root))
    assert {change.knob for change in planned_now.changes} == set(kept)
    assert planned_now.cpus.isolated == {2, 3}


@pytest.mark.slow
def test_a_profile_of_no_knob_is_one_too(root: Path, tmp_path: Path) -> None:
    path = tmp_path / "none.toml"
    path.write_text(toml(plan_on(root), (), "none", "nothing matters here"))
    assert quiet.plan(str(path), root=str(root)).changes == ()
