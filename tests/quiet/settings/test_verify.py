"""Verify is plan again: settings hold, or have drifted, or were never applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet.errors import UsageError
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.settings.apply import apply
from quiet.settings.verify import applied_profile, plan_now
from tests.quiet.kernels import profile, tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path / "machine")


def test_before_an_apply_everything_differs_and_nothing_is_applied(root: Path) -> None:
    made, record = plan_now(Reader(str(root)), profile(), None)
    assert made.changes
    assert record is None


def test_after_an_apply_nothing_differs(root: Path) -> None:
    apply(Host(str(root)), profile())
    made, record = plan_now(Reader(str(root)), profile(), None)
    assert made.changes == ()
    assert record is not None


def test_drift_is_named_with_the_current_and_the_wanted_value(root: Path) -> None:
    apply(Host(str(root)), profile())
    (root / "proc/irq/2/smp_affinity_list").write_text("0-3\n")
    made, _ = plan_now(Reader(str(root)), profile(), None)
    assert [(c.target, c.current, c.wanted) for c in made.changes] == [("irq:2", "0-3", "0,2")]


def test_the_applied_cpus_stay_the_chosen_ones_although_the_host_now_looks_different(root: Path) -> None:
    apply(Host(str(root)), profile(cpus="auto"))
    (root / "sys/devices/system/cpu/online").write_text("0,2-3\n")
    made, record = plan_now(Reader(str(root)), profile(cpus="auto"), None)
    assert record is not None
    assert made.cpus == record.cpus
    assert made.changes == ()


def test_another_profile_or_other_cpus_are_not_the_applied_ones(root: Path) -> None:
    apply(Host(str(root)), profile())
    assert plan_now(Reader(str(root)), profile(name="other"), None)[1] is None
    assert plan_now(Reader(str(root)), profile(), "2")[1] is None
    assert plan_now(Reader(str(root)), profile(), "3")[1] is not None


def test_the_applied_profile_is_the_one_to_verify(root: Path, tmp_path: Path) -> None:
    reader = Reader(str(root))
    assert applied_profile(reader, None).name == "bench"
    path = tmp_path / "mine.toml"
    path.write_text('name = "mine"\n[cpus]\nisolated = "3"\n[knobs]\nksm = "quiet"\n')
    mine = applied_profile(reader, str(path))
    apply(Host(str(root)), mine)
    assert applied_profile(reader, None) == mine
    assert applied_profile(reader, "bench").name == "bench"
    path.unlink()
    with pytest.raises(UsageError, match="no such file"):
        applied_profile(reader, None)
