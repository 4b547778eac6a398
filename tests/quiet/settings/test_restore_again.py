"""An incomplete restore, changes on the host after it, and the next restore."""

from __future__ import annotations

from pathlib import Path

import pytest

import quiet
from quiet.host.host import Host
from quiet.settings.apply import apply
from quiet.settings.profile import check
from quiet.settings.restore import restore
from quiet.targets import registry
from tests.quiet.kernels import profile, settings, tree
from tests.quiet.memory import Memory
from tests.quiet.settings.journals import JOURNAL
from tests.trees import machine, task

STAT = "proc/sys/vm/stat_interval"
KSM = "sys/kernel/mm/ksm/run"


@pytest.mark.parametrize("option", ["", "force", "keep"])
def test_a_restored_setting_that_another_program_changes_is_left_alone(tmp_path: Path, option: str) -> None:
    root = tree(tmp_path / "m", settings())
    host = Host(str(root))
    apply(host, profile("vm.stat_interval", "ksm"))
    (root / STAT).write_text("9\n")
    assert not restore(host).complete
    (root / KSM).write_text("2\n")
    restore(host, force=option == "force", keep=option == "keep")
    assert (root / KSM).read_text() == "2\n"


def test_with_a_damaged_journal_the_report_says_whether_an_unexplained_value_was_written_back(tmp_path: Path) -> None:
    root = tree(tmp_path / "m", settings())
    host = Host(str(root))
    apply(host, profile("vm.stat_interval", "ksm"))
    (root / STAT).write_text("9\n")
    assert not restore(host).complete
    (root / KSM).write_text("2\n")
    with open(root / JOURNAL, "a") as journal:
        journal.write("damaged\n")
    reasons = {each.target: each.reason for each in restore(host).damage}
    assert (root / KSM).read_text() == "2\n"
    assert reasons["file:/" + KSM] == "it was '2', which the journal does not explain; '1' was not written back"
    assert (root / STAT).read_text() == "1\n"
    assert reasons["file:/" + STAT] == "it was '9', which the journal does not explain; '1' was written back"


def test_keep_also_accepts_what_cannot_be_restored(tmp_path: Path) -> None:
    class Stuck(Host):
        stuck = False

        def write(self, path: str, value: str) -> None:
            if self.stuck and path.endswith("ksm/run"):
                raise OSError(16, "Device or resource busy")
            super().write(path, value)

    host = Stuck(str(tree(tmp_path / "m", settings() | {KSM: "1"})))
    apply(host, profile("ksm"))
    host.stuck = True
    assert [failure.target for failure in restore(host).failures] == ["file:/" + KSM]
    done = restore(host, keep=True)
    assert done.complete
    assert [each.target for each in done.accepted] == ["file:/" + KSM]
    assert restore(host).profile is None


def test_a_second_restore_leaves_the_affinity_that_a_task_has_set_too(tmp_path: Path) -> None:
    class Stuck(Memory):
        stuck = True

        def write(self, path: str, value: str) -> None:
            if self.stuck and path.endswith("stat_interval") and value == "1":
                raise OSError(16, "Device or resource busy")
            super().write(path, value)

    host = Stuck(str(tmp_path), machine(cpus=4, cgroup=0) | task(812, "mover", "0-3") | {STAT: "1"})
    knobs = {"tasks": "quiet", "vm.stat_interval": "quiet"}
    apply(host, check({"cpus": {"isolated": "2-3"}, "knobs": knobs}, "profile own", "own"))
    host.set_affinity(812, "2")
    assert not restore(host).complete
    host.stuck = False
    done = restore(host)
    assert done.complete
    assert done.gone == ("task:812",)
    assert registry.get(host, "task:812") == "2"


def test_a_task_that_moves_as_soon_as_its_cpus_are_written_back_does_not_block_the_restore(tmp_path: Path) -> None:
    class Moving(Memory):
        def set_affinity(self, tid: int, cpus: str) -> None:
            super().set_affinity(tid, cpus)
            super().set_affinity(tid, "0-1")

    host = Moving(str(tmp_path), machine(cpus=4, cgroup=0) | task(812, "mover", "0-3"))
    apply(host, check({"cpus": {"isolated": "2-3"}, "knobs": {"tasks": "quiet"}}, "profile own", "own"))
    done = restore(host)
    assert done.complete
    assert done.gone == ("task:812",)
    assert restore(host).profile is None


def test_an_error_inside_applied_has_a_note_for_each_setting_that_is_not_restored(tmp_path: Path) -> None:
    root = tree(tmp_path / "m", settings() | {KSM: "1"})

    def block() -> None:
        with quiet.applied(profile("ksm"), root=str(root)):
            Host(str(root)).write(f"/{KSM}", "2")
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine") as error:
        block()
    (note,) = error.value.__notes__
    assert note.startswith(f"not restored: file:/{KSM}: changed to '2' after the apply")
