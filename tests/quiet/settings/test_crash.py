"""Killed at any step, quiet leaves a journal from which everything is restored byte for byte."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.settings import journal
from quiet.settings.apply import apply
from quiet.settings.profile import Profile
from quiet.settings.restore import restore
from quiet.settings.verify import plan_now
from tests.quiet.kernels import killed, profile, small, tree
from tests.trees import contents


def small_profile() -> Profile:
    return profile("irq", "workqueue", "watchdog.nmi", "ksm", "vm.stat_interval", cpus="1")


def applied(root: Path) -> None:
    apply(Host(str(root)), small_profile())


@pytest.mark.slow
@pytest.mark.parametrize("torn", [False, True], ids=["between", "in a line of the journal"])
def test_an_apply_killed_at_any_step_is_restored(tmp_path: Path, torn: bool) -> None:
    for step in itertools.count(1):
        root = tree(tmp_path / str(step), small())
        found = contents(root)
        died = killed(lambda root=root: applied(root), step, torn)  # type: ignore[misc]
        assert restore(Host(str(root))).complete, f"step {step}"
        assert contents(root) == found, f"step {step}"
        assert journal.load(Host(str(root))) is None
        if not died:
            break
    assert step > (12 if torn else 30)


@pytest.mark.slow
def test_a_restore_killed_at_any_step_is_completed_by_the_next(tmp_path: Path) -> None:
    for step in itertools.count(1):
        root = tree(tmp_path / str(step), small())
        found = contents(root)
        applied(root)
        died = killed(lambda root=root: restore(Host(str(root))), step)  # type: ignore[misc]
        assert restore(Host(str(root))).complete, f"step {step}"
        assert contents(root) == found, f"step {step}"
        if not died:
            break
    assert step > 7


@pytest.mark.slow
def test_a_restore_killed_at_any_step_still_knows_what_others_changed(tmp_path: Path) -> None:
    for step in itertools.count(1):
        root = tree(tmp_path / str(step), small())
        found = contents(root)
        applied(root)
        (root / "proc/sys/vm/stat_interval").write_text("30\n")
        died = killed(lambda root=root: restore(Host(str(root))), step)  # type: ignore[misc]
        outcome = restore(Host(str(root)))
        assert [skip.target for skip in outcome.conflicts] == ["file:/proc/sys/vm/stat_interval"], f"step {step}"
        assert contents(root) == found | {"proc/sys/vm/stat_interval": b"30\n"}, f"step {step}"
        if not died:
            break


@pytest.mark.slow
@pytest.mark.parametrize("torn", [False, True], ids=["between", "in a line of the journal"])
def test_an_apply_killed_at_any_step_is_completed_by_the_next_and_then_restored(tmp_path: Path, torn: bool) -> None:
    for step in itertools.count(1):
        root = tree(tmp_path / str(step), small())
        found = contents(root)
        died = killed(lambda root=root: applied(root), step, torn)  # type: ignore[misc]
        applied(root)
        assert plan_now(Host(str(root)), small_profile(), None)[0].changes == (), f"step {step}"
        assert restore(Host(str(root))).complete
        assert contents(root) == found, f"step {step}"
        if not died:
            break


def test_a_killed_apply_holds_no_lock(tmp_path: Path) -> None:
    root = tree(tmp_path / "machine", small())
    assert killed(lambda: applied(root), 8)
    with locked(Host(str(root))):
        pass
