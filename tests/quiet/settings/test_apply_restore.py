"""Apply and restore on machines made of files: a second apply changes nothing, restores are exact to the byte, and
others' changes are kept.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

import pytest

from quiet.errors import Refused
from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.settings import journal
from quiet.settings.apply import Receipt, apply
from quiet.settings.plan import Plan
from quiet.settings.restore import restore
from quiet.settings.verify import plan_now
from tests.quiet.kernels import KNOBS, POLICY, SYSCTL, profile, tree
from tests.trees import contents, plant, task

STAT = "file:/proc/sys/vm/stat_interval"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path / "machine")


def quieted(root: Path) -> Receipt:
    return apply(Host(str(root)), profile())


def now(root: Path) -> Plan:
    return plan_now(Host(str(root)), profile(), None)[0]


def test_every_knob_of_a_tree_is_applied(root: Path) -> None:
    done = quieted(root)
    assert {change.knob for change in done.changes} == set(KNOBS)
    assert not done.failures
    assert Host(str(root)).text(f"{POLICY}3/scaling_governor") == "performance"
    assert Host(str(root)).text("/proc/irq/0/smp_affinity_list") == "0,2"


def test_apply_is_idempotent(root: Path) -> None:
    quieted(root)
    first = contents(root)
    again = quieted(root)
    assert again.changes == ()
    assert contents(root) == first
    assert now(root).changes == ()


def test_restore_brings_every_file_back_byte_for_byte(root: Path) -> None:
    found = contents(root)
    done = quieted(root)
    assert contents(root) != found
    outcome = restore(Host(str(root)))
    assert outcome.complete
    assert outcome.restored == len(done.changes)
    assert contents(root) == found
    assert journal.load(Host(str(root))) is None


def test_restore_after_two_applies_restores_the_values_before_the_first(root: Path) -> None:
    found = contents(root)
    quieted(root)
    (root / "proc/irq/0/smp_affinity_list").write_text("3\n")
    assert [change.target for change in quieted(root).changes] == ["irq:0"]
    restore(Host(str(root)))
    assert contents(root) == found


def test_restore_of_nothing_does_nothing(root: Path) -> None:
    found = contents(root)
    outcome = restore(Host(str(root)))
    assert outcome.profile is None
    assert outcome.complete
    assert contents(root) == found
    assert not (root / "run").exists()


def test_a_second_profile_is_refused_with_the_remedy(root: Path) -> None:
    quieted(root)
    first = contents(root)
    with pytest.raises(Refused, match="'test' is applied; run `quiet restore` first, then apply 'other'"):
        apply(Host(str(root)), profile("irq", name="other"))
    assert contents(root) == first


def test_different_cpus_are_refused_with_the_remedy_and_the_same_are_accepted(root: Path) -> None:
    quieted(root)
    with pytest.raises(Refused, match="applied to CPUs 3; run `quiet restore` first to choose others"):
        apply(Host(str(root)), profile(), "2")
    assert apply(Host(str(root)), profile(), "3").changes == ()


def test_settings_changed_by_another_program_are_named_and_left_alone(root: Path) -> None:
    found = contents(root)
    quieted(root)
    (root / "proc/sys/vm/stat_interval").write_text("30\n")
    outcome = restore(Host(str(root)))
    assert not outcome.complete
    assert [(skip.target, skip.reason) for skip in outcome.conflicts] == [
        (STAT, "changed to '30' after the apply (original '1', applied '120')")
    ]
    assert contents(root) == found | {"proc/sys/vm/stat_interval": b"30\n"}
    assert journal.load(Host(str(root))) is not None


def test_force_restores_the_original_values_over_others_changes(root: Path) -> None:
    found = contents(root)
    quieted(root)
    (root / "proc/sys/vm/stat_interval").write_text("30\n")
    restore(Host(str(root)))
    assert restore(Host(str(root)), force=True).complete
    assert contents(root) == found


def test_keep_accepts_others_changes(root: Path) -> None:
    found = contents(root)
    quieted(root)
    (root / "proc/sys/vm/stat_interval").write_text("30\n")
    assert restore(Host(str(root)), keep=True).complete
    assert contents(root) == found | {"proc/sys/vm/stat_interval": b"30\n"}
    assert journal.load(Host(str(root))) is None


def test_a_setting_that_another_program_already_restored_is_not_a_conflict(root: Path) -> None:
    found = contents(root)
    quieted(root)
    (root / "proc/sys/vm/stat_interval").write_text("1\n")
    assert restore(Host(str(root))).complete
    assert contents(root) == found


def test_a_setting_that_the_kernel_lowers_by_itself_is_not_a_conflict(root: Path) -> None:
    found = contents(root)
    quieted(root)
    (root / "proc/sys/kernel/perf_event_max_sample_rate").write_text("25\n")
    assert restore(Host(str(root))).complete
    assert contents(root) == found


def test_a_neighbor_that_we_never_wrote_keeps_another_programs_value(root: Path) -> None:
    quieted(root)
    other = root / f"{POLICY.lstrip('/')}0/scaling_min_freq"
    other.write_text("900000\n")
    assert restore(Host(str(root))).complete
    assert other.read_text() == "900000\n"


def test_an_interrupt_that_now_belongs_to_another_device_is_gone_not_restored(root: Path) -> None:
    quieted(root)
    (root / "sys/kernel/irq/0/actions").write_text("eth0\n")
    (root / "proc/irq/0/smp_affinity_list").write_text("0\n")
    outcome = restore(Host(str(root)))
    assert outcome.complete
    assert outcome.gone == ("irq:0",)
    assert (root / "proc/irq/0/smp_affinity_list").read_text() == "0\n"


def made_anew(root: Path) -> None:
    """The driver of interrupt 0 lets it go and asks for it again, for the same device."""
    folder = root / "sys/kernel/irq/0"
    shutil.copytree(folder, folder.with_name("new"))
    shutil.rmtree(folder)
    folder.with_name("new").rename(folder)


def test_the_mask_of_an_interrupt_recreated_by_its_driver_is_not_a_conflict(root: Path) -> None:
    quieted(root)
    made_anew(root)
    (root / "proc/irq/0/smp_affinity_list").write_text("1\n")
    outcome = restore(Host(str(root)))
    assert outcome.complete
    assert outcome.gone == ("irq:0",)
    assert (root / "proc/irq/0/smp_affinity_list").read_text() == "1\n"


def test_an_interrupt_that_was_requested_again_and_has_our_value_is_restored(root: Path) -> None:
    found = contents(root)
    quieted(root)
    made_anew(root)
    outcome = restore(Host(str(root)))
    assert (outcome.complete, outcome.gone) == (True, ())
    assert contents(root) == found


def test_a_setting_that_went_away_with_its_device_is_gone_and_not_counted_as_restored(root: Path) -> None:
    done = quieted(root)
    (root / "sys/kernel/mm/ksm/run").unlink()
    outcome = restore(Host(str(root)))
    assert outcome.complete
    assert outcome.restored == len(done.changes) - 1
    assert outcome.gone == ("file:/sys/kernel/mm/ksm/run",)


def test_after_a_reboot_nothing_is_applied(root: Path) -> None:
    quieted(root)
    (root / "proc/sys/kernel/random/boot_id").write_text("another\n")
    after = contents(root)
    assert journal.load(Host(str(root))) is None
    assert restore(Host(str(root))).profile is None
    assert contents(root) == after
    assert quieted(root).changes == ()


def test_while_another_quiet_runs_nothing_is_changed(root: Path) -> None:
    found = contents(root)
    with locked(Host(str(root))):
        with pytest.raises(Refused, match="another quiet process is changing this host right now"):
            quieted(root)
        assert contents(root) == found
    quieted(root)
    with open(root / "run/quiet/lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(Refused, match="another quiet"):
            restore(Host(str(root)))


def test_without_root_the_remedy_is_reported_and_nothing_is_changed(root: Path) -> None:
    found = contents(root)
    root.chmod(0o755)
    for folder in (root.parent, *root.parent.parents[:-2]):
        folder.chmod(folder.stat().st_mode | 0o055)
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            os.setuid(65534)
            quieted(root)
        except Refused as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    os.close(writing)
    with os.fdopen(reading) as said:
        message = "changing the host needs root: run this command with sudo (plan, status and verify need no root)"
        assert said.read() == message
    assert contents(root) == found


def test_a_restore_in_progress_must_finish_before_an_apply(root: Path) -> None:
    quieted(root)
    (root / "proc/sys/vm/stat_interval").write_text("30\n")
    restore(Host(str(root)))
    with pytest.raises(Refused, match="a restore is incomplete; run `quiet restore` first"):
        quieted(root)


def test_plan_and_verify_write_nothing(root: Path) -> None:
    found = contents(root)
    made = now(root)
    assert made.changes
    assert contents(root) == found
    assert not (root / "run").exists()


def test_the_plan_shows_what_apply_then_does(root: Path) -> None:
    planned = now(root).changes
    assert quieted(root).changes == planned


def test_side_effects_of_a_change_are_recorded_before_it(root: Path) -> None:
    quieted(root)
    record = journal.load(Host(str(root)))
    assert record is not None
    touched = {entry.target: entry.before for entry in record.entries.values() if entry.passing}
    assert touched["file:/sys/devices/system/cpu/intel_pstate/min_perf_pct"] == "26"
    assert touched[f"file:{POLICY}0/scaling_max_freq"] == "3000000"


def test_side_effects_of_the_kernel_are_restored(root: Path) -> None:
    found = contents(root)

    class Turbo(Host):
        def write(self, path: str, value: str) -> None:
            super().write(path, value)
            if path.endswith("no_turbo") and value == "1":
                super().write("/sys/devices/system/cpu/intel_pstate/min_perf_pct", "40")

    apply(Turbo(str(root)), profile())
    assert Host(str(root)).text("/sys/devices/system/cpu/intel_pstate/min_perf_pct") == "40"
    assert restore(Turbo(str(root))).complete
    assert contents(root) == found


def test_tasks_and_interrupts_bound_to_a_cpu_that_goes_offline_are_recorded(root: Path) -> None:
    (root / "proc/irq/1/smp_affinity_list").write_text("1\n")
    plant(root, task(20, "pinned", "1") | task(21, "free", "0-1"))
    apply(Host(str(root)), profile("smt"))
    record = journal.load(Host(str(root)))
    assert record is not None
    recorded = {target for target, entry in record.entries.items() if entry.passing}
    assert {"irq:1", "task:20"} <= recorded
    assert not {"irq:0", "task:21"} & recorded


def test_sysctls_keep_their_names_in_the_journal(root: Path) -> None:
    quieted(root)
    text = (root / "run/quiet/journal.jsonl").read_text()
    assert f'"file:{SYSCTL}nmi_watchdog"' in text


@pytest.mark.parametrize("value", ["1", "120"], ids=["as found", "as applied"])
def test_a_conflict_resolved_by_hand_is_no_longer_a_conflict(root: Path, value: str) -> None:
    found = contents(root)
    quieted(root)
    (root / "proc/sys/vm/stat_interval").write_text("30\n")
    assert not restore(Host(str(root))).complete
    (root / "proc/sys/vm/stat_interval").write_text(value + "\n")
    assert restore(Host(str(root))).complete
    assert contents(root) == found


def test_a_second_apply_does_not_forget_what_another_program_changed(root: Path) -> None:
    quieted(root)
    pages, other = root / "sys/kernel/mm/transparent_hugepage/enabled", root / f"{POLICY[1:]}0/scaling_min_freq"
    pages.write_text("never\n")
    other.write_text("900000\n")
    assert quieted(root).changes == ()
    outcome = restore(Host(str(root)))
    assert [skip.knob for skip in outcome.conflicts] == ["thp"]
    assert (pages.read_text(), other.read_text()) == ("never\n", "900000\n")


def test_a_profile_applied_for_one_command_stays_after_an_explicit_apply(root: Path) -> None:
    apply(Host(str(root)), profile(), passing=True)
    record = journal.load(Host(str(root)))
    assert record is not None
    assert record.passing
    quieted(root)
    record = journal.load(Host(str(root)))
    assert record is not None
    assert not record.passing


def test_no_other_process_can_hold_the_lock(root: Path) -> None:
    quieted(root)
    assert (root / "run/quiet/lock").stat().st_mode & 0o077 == 0


def test_the_other_cpusets_of_cgroup_v1_are_recorded_before_a_cpu_goes_offline(root: Path) -> None:
    mount = "sys/fs/cgroup/cpuset"
    plant(root, {"proc/mounts": f"cgroup /{mount} cgroup rw,cpuset 0 0", f"{mount}/docker/cpuset.cpus": "0-3"})
    made = plan_now(Host(str(root)), profile("smt"), None)[0]
    assert ("smt", "cgroup:/docker/cpuset.cpus") in made.entangled
