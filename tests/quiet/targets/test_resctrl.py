"""Dividing the caches, on a host that refuses what the kernel refuses. No emulator has this hardware."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiet.knobs.resctrl import DivisibleCache, read_masks, split, write_masks
from quiet.settings.apply import apply
from quiet.settings.profile import Profile, check
from quiet.settings.restore import restore
from quiet.settings.verify import plan_now
from quiet.targets.resctrl import ROOT
from tests.quiet.kernels import refuse
from tests.quiet.resctrl import Resctrl, neighbours, parse
from tests.trees import contents, plant, task


def wanted(cpus: str = "3") -> Profile:
    return check({"name": "test", "cpus": {"isolated": cpus}, "knobs": {"resctrl": "quiet"}}, "test", "test")


@pytest.mark.parametrize("cdp", [False, True])
def test_an_unmounted_resctrl_is_mounted_divided_and_unmounted_again(tmp_path: Path, cdp: bool) -> None:
    host = Resctrl(tmp_path, cdp=cdp)
    before = contents(tmp_path)
    done = apply(host, wanted())
    assert done.failures == ()
    assert host.text(f"{ROOT}/quiet/mode") == "exclusive"
    assert host.text(f"{ROOT}/quiet/cpus_list") == "3"
    for domains in parse(host.text(f"{ROOT}/quiet/schemata") or "").values():
        assert domains == {0: 0b11, 1: 0b11111}  # the fewest where no isolated CPU is, half where one is
    assert plan_now(host, wanted(), None)[0].changes == ()
    assert restore(host).complete
    assert contents(tmp_path) == before


def test_a_mounted_resctrl_stays_mounted_and_foreign_groups_are_unchanged(tmp_path: Path) -> None:
    host = Resctrl(tmp_path)
    host.mount("resctrl", ROOT)
    host.mkdir(f"{ROOT}/web")
    for group, line in (("/web", "L3:0=780;1=780"), ("", "L3:0=0ff;1=7ff")):
        host.write(f"{ROOT}{group}/schemata", line)
    before = contents(tmp_path)
    assert apply(host, wanted()).failures == ()
    assert parse(host.text(f"{ROOT}/quiet/schemata") or "")["L3"][1] == 0b11111
    assert parse(host.text(f"{ROOT}/web/schemata") or "")["L3"] == {0: 0x780, 1: 0x780}
    assert plan_now(host, wanted(), None)[0].changes == ()
    assert restore(host).complete
    assert contents(tmp_path) == before


def test_masks_that_another_program_has_changed_are_a_conflict(tmp_path: Path) -> None:
    host = Resctrl(tmp_path)
    host.mount("resctrl", ROOT)
    before = contents(tmp_path)
    apply(host, wanted())
    host.write(f"{ROOT}/schemata", "L3:0=7f0")
    outcome = restore(host)
    assert [conflict.target for conflict in outcome.conflicts] == ["schemata:/L3"]
    assert not outcome.complete
    assert restore(host, force=True).complete
    assert contents(tmp_path) == before


def test_changed_masks_that_disappear_with_their_group_are_no_conflict(tmp_path: Path) -> None:
    host = Resctrl(tmp_path)
    before = contents(tmp_path)
    apply(host, wanted())
    host.write(f"{ROOT}/quiet/schemata", "L3:1=3")
    assert restore(host).complete
    assert contents(tmp_path) == before


def test_a_processor_without_a_free_class_is_left_unchanged(tmp_path: Path) -> None:
    host = Resctrl(tmp_path, closids=1)
    before = contents(tmp_path)
    done = apply(host, wanted())
    assert done.failures == ()
    assert {"the processor has no class of service left for another group"} <= {skip.reason for skip in done.skips}
    assert contents(tmp_path) == before
    assert restore(host).complete
    assert contents(tmp_path) == before


def test_our_mount_stays_if_it_holds_another_programs_group_and_this_is_reported(tmp_path: Path) -> None:
    host = Resctrl(tmp_path)
    apply(host, wanted())
    host.mkdir(f"{ROOT}/theirs")
    outcome = restore(host)
    assert [failure.target for failure in outcome.failures] == [f"mount:{ROOT}"]
    assert "theirs" in outcome.failures[0].reason
    assert not host.exists(f"{ROOT}/quiet")
    host.rmdir(f"{ROOT}/theirs")
    assert restore(host).complete


def test_a_refusal_has_the_kernels_own_reason(tmp_path: Path) -> None:
    host = Resctrl(tmp_path)
    host.fewest = 12  # a rule that info does not report
    host.mount("resctrl", ROOT)
    (host.file("/info/L3/min_cbm_bits")).write_text("2\n")
    done = apply(host, wanted())
    assert "Need 12 neighbouring bits" in done.failures[0].reason


def test_targets_that_need_a_refused_partition_are_not_written(tmp_path: Path) -> None:
    v1 = "sys/fs/cgroup/cpuset/"
    files = {"proc/mounts": "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0", "proc/20/cpuset": "/"}
    files |= {v1 + "cpuset.cpus": "0-3", v1 + "cpuset.mems": "0", v1 + "cpuset.sched_load_balance": "1"}
    host = Resctrl(tmp_path)
    plant(tmp_path, files | task(20, "sshd", "0-3"))
    host.laws = (refuse("/quiet/cpuset.cpus", 22),)
    knobs = {"cpuset": "quiet", "cpuset.members": "quiet", "resctrl": "quiet"}
    done = apply(host, check({"cpus": {"isolated": "3"}, "knobs": knobs}, "test", "test"))
    assert host.text(f"{ROOT}/quiet/mode") == "exclusive"
    assert not [path for path, _ in host.written if path.endswith(("/tasks", "sched_load_balance"))]
    assert "requires the knob cpuset" in {skip.target: skip.reason for skip in done.skips}["cpuset:20"]


MASKS = st.integers(1, (1 << 20) - 1)


@given(MASKS, MASKS, st.integers(1, 20), st.integers(1, 4), st.booleans())
def test_a_split_is_valid_for_both_sides_or_there_is_none(
    whole: int, usable: int, ways: int, fewest: int, sparse: bool
) -> None:
    mine = split(whole, whole & usable, ways, DivisibleCache("L3", ("L3",), fewest, 0, sparse))
    if mine:
        rest = whole & ~mine
        assert mine & ~(whole & usable) == 0
        assert neighbours(mine >> (mine & -mine).bit_length() - 1)
        assert fewest <= mine.bit_count() <= max(ways, fewest)
        assert rest.bit_count() >= fewest
        assert sparse or neighbours(rest)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(
    st.booleans(),
    st.integers(1, 3),
    st.integers(6, 20),
    st.sets(st.integers(0, 3), min_size=1, max_size=3),
    st.integers(0, 4),
)
def test_for_any_caches_the_second_plan_is_empty_and_everything_is_restored(
    cdp: bool, closids: int, ways: int, cpus: set[int], theirs: int
) -> None:
    """`theirs`: so many ways belong to another program's group in both caches; 0 is without one, and not mounted."""
    with tempfile.TemporaryDirectory() as folder:
        host = Resctrl(Path(folder), cdp=cdp, closids=closids, ways=ways)
        if theirs and closids > 1:
            host.mount("resctrl", ROOT)
            host.mkdir(f"{ROOT}/web")
            for group in ("/web", ""):
                mask = (1 << theirs + 1) - 1 if group else host.full
                for name in host.resources:
                    host.write(f"{ROOT}{group}/schemata", f"{name}:0={mask:x};1={mask:x}")
        before = contents(Path(folder))
        profile = wanted(",".join(map(str, sorted(cpus))))
        assert apply(host, profile).failures == ()
        assert plan_now(host, profile, None)[0].changes == ()
        if host.exists(f"{ROOT}/quiet"):
            assert host.text(f"{ROOT}/quiet/mode") == "exclusive"
        assert restore(host).complete
        assert contents(Path(folder)) == before


@given(st.dictionaries(st.integers(0, 99), MASKS, min_size=1))
def test_a_line_is_read_as_it_was_written(masks: dict[int, int]) -> None:
    assert read_masks(write_masks(masks)) == masks
