"""Values that the kernel refuses, rounds or reverts, and their handling."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from quiet.settings.apply import apply
from quiet.settings.plan import Plan
from quiet.settings.profile import Profile
from quiet.settings.restore import restore
from quiet.settings.verify import plan_now
from tests.quiet.kernels import (
    POLICY,
    SYSCTL,
    Cgroups,
    Kernel,
    clamped,
    preference_under_governor,
    profile,
    rate_under_share,
    refuse,
    settings,
    tree,
)
from tests.trees import CPU, contents


def machine(path: Path, **changed: str) -> Path:
    return tree(path / "machine", settings() | {name.replace("__", "/"): text for name, text in changed.items()})


def second(host: Kernel, wanted: Profile) -> Plan:
    return plan_now(host, wanted, None)[0]


@pytest.mark.parametrize(
    ("knob", "path", "number", "reason"),
    [
        ("irq", "/proc/irq/1/smp_affinity_list", errno.EIO, "managed by its driver"),
        ("irq", "/proc/irq/1/smp_affinity_list", errno.EPERM, "managed by its driver"),
        ("irq", "/proc/irq/1/smp_affinity_list", errno.EINVAL, "cannot route"),
        ("irq", "/proc/irq/1/smp_affinity_list", errno.ENOSPC, "no free vector"),
        ("watchdog.nmi", f"{SYSCTL}nmi_watchdog", errno.EOPNOTSUPP, "no hard-lockup detector"),
        ("watchdog.nmi", f"{SYSCTL}nmi_watchdog", 524, "no hard-lockup detector"),
        ("smt", "/sys/devices/system/cpu/cpu1/online", errno.EBUSY, "otherwise needed"),
        ("cpufreq.turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo", errno.EPERM, "in the firmware"),
        ("cpufreq.turbo", "/sys/devices/system/cpu/intel_pstate/no_turbo", errno.EAGAIN, "switched off"),
    ],
)
def test_an_expected_refusal_is_a_skip_and_not_tried_again(
    tmp_path: Path, knob: str, path: str, number: int, reason: str
) -> None:
    root = machine(tmp_path)
    found = contents(root)
    host = Kernel(root, refuse(path, number))
    wanted = profile(knob)
    done = apply(host, wanted)
    assert done.failures == ()
    assert [reason in skip.reason for skip in done.skips] == [True]
    assert path not in {change.target.removeprefix("file:") for change in done.changes}
    assert second(host, wanted).changes == ()
    assert apply(host, wanted).changes == ()
    assert restore(host).complete
    assert contents(root) == found


def test_an_unexpected_refusal_is_a_failure_with_the_kernels_words(tmp_path: Path) -> None:
    root = machine(tmp_path)
    host = Kernel(root, refuse("/ksm/run", errno.EIO))
    done = apply(host, profile("ksm", "thp"))
    assert [(item.target, item.reason) for item in done.failures] == [
        ("file:/sys/kernel/mm/ksm/run", "the kernel refused '0': Input/output error")
    ]
    assert [change.knob for change in done.changes] == ["thp"]


def test_a_value_that_does_not_stick_is_a_failure_with_the_kernels_value(tmp_path: Path) -> None:
    host = Kernel(machine(tmp_path), lambda kernel, path, value: "1" if path.endswith("ksm/run") else value)
    done = apply(host, profile("ksm"))
    assert [item.reason for item in done.failures] == ["the kernel refused '0': the kernel reports '1'"]


def test_preference_and_governor_are_restored_although_one_locks_the_other(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = contents(root)
    host = Kernel(root, preference_under_governor)
    wanted = profile("cpufreq.epp", "cpufreq.governor")
    done = apply(host, wanted)
    assert not done.failures
    assert host.text(f"{POLICY}3/energy_performance_preference") == "performance"
    assert restore(host).complete
    assert contents(root) == found


@pytest.mark.parametrize("share", ["0", "100", "25"])
def test_the_sampling_rate_is_written_and_restored_around_its_lock(tmp_path: Path, share: str) -> None:
    root = machine(tmp_path, proc__sys__kernel__perf_cpu_time_max_percent=share)
    found = contents(root)
    host = Kernel(root, rate_under_share)
    done = apply(host, profile("perf.sample_rate", "perf.cpu_time"))
    assert not done.failures
    assert host.text(f"{SYSCTL}perf_event_max_sample_rate") == "1"
    assert restore(host).complete
    assert contents(root) == found


def test_the_sampling_rate_alone_is_a_skip_while_it_is_locked(tmp_path: Path) -> None:
    root = machine(tmp_path, proc__sys__kernel__perf_cpu_time_max_percent="0")
    done = apply(Kernel(root, rate_under_share), profile("perf.sample_rate"))
    assert done.changes == ()
    assert "perf_cpu_time_max_percent" in done.skips[0].reason


def test_a_frequency_that_the_kernel_rounds_is_accepted_and_not_requested_again(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = contents(root)
    host = Kernel(root, clamped)
    wanted = profile("cpufreq.limits")
    done = apply(host, wanted)
    assert not done.failures
    assert host.text(f"{POLICY}3/scaling_max_freq") == "2000000"
    after = second(host, wanted)
    assert after.changes == ()
    assert {skip.reason for skip in after.skips} == {"the kernel stores 2000000 instead of 2100000"}
    host.laws = ()
    assert restore(host).complete
    assert contents(root) == found


def test_rounding_by_the_kernel_during_restore_is_reported(tmp_path: Path) -> None:
    host = Kernel(machine(tmp_path))
    apply(host, profile("cpufreq.limits"))
    host.laws = (clamped,)
    outcome = restore(host)
    assert [item.target for item in outcome.failures] == [f"file:{POLICY}3/scaling_max_freq"]
    assert "'3000000' could not be written back: the kernel reports '2000000'" in outcome.failures[0].reason
    host.laws = ()
    assert restore(host).complete


def test_a_partition_is_created_and_removed(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = contents(root)
    host = Cgroups(root)
    wanted = profile("cpuset")
    done = apply(host, wanted)
    assert [change.target for change in done.changes][-1] == "cgroup:/quiet/cpuset.cpus.partition"
    assert host.text("/sys/fs/cgroup/quiet/cpuset.cpus") == "3"
    assert second(host, wanted).changes == ()
    del host.written[:]
    assert restore(host).complete
    assert contents(root) == found
    assert not (root / "sys/fs/cgroup/quiet").exists()
    assert host.written[0] == ("/sys/fs/cgroup/quiet/cpuset.cpus.partition", "member")


def test_tasks_leave_the_cgroup_before_it_is_removed(tmp_path: Path) -> None:
    root = machine(tmp_path)
    (root / "sys/fs/cgroup/cgroup.procs").write_text("")

    class Moving(Cgroups):
        def write(self, path: str, value: str) -> None:
            super().write(path, value)
            if path == "/sys/fs/cgroup/cgroup.procs":
                super().write("/sys/fs/cgroup/quiet/cgroup.procs", "")

    host = Moving(root)
    apply(host, profile("cpuset"))
    (root / "sys/fs/cgroup/quiet/cgroup.procs").write_text("812\n")
    (root / "sys/fs/cgroup/quiet/cgroup.controllers").write_text("cpuset\n")
    assert restore(host).complete
    assert (root / "sys/fs/cgroup/cgroup.procs").read_text() == "812\n"


def test_a_partition_that_is_accepted_but_invalid_is_a_failure_and_completely_removed(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = contents(root)
    host = Cgroups(root)
    host.verdict = "isolated invalid (Cpu list in cpuset.cpus not exclusive)"
    wanted = profile("cpuset", "ksm")
    done = apply(host, wanted)
    assert [item.target for item in done.failures] == ["cgroup:/quiet/cpuset.cpus.partition"]
    assert "Cpu list in cpuset.cpus not exclusive" in done.failures[0].reason
    assert [change.knob for change in done.changes] == ["ksm"]
    assert contents(root) == found | {"sys/kernel/mm/ksm/run": b"0\n"}
    after = second(host, wanted)
    assert after.changes == ()
    assert {skip.knob for skip in after.skips} == {"cpuset"}
    assert restore(host).complete
    assert contents(root) == found


def test_without_isolated_partitions_the_knob_is_skipped_and_completely_reverted(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = contents(root)
    host = Cgroups(root, refuse(".partition", errno.EINVAL))
    done = apply(host, profile("cpuset"))
    assert done.failures == ()
    assert any("before Linux 6.1" in skip.reason for skip in done.skips)
    assert contents(root) == found


def test_refused_targets_come_with_their_interrupts_number_only_once(tmp_path: Path) -> None:
    host = Kernel(machine(tmp_path), refuse("/irq/1/smp_affinity_list", errno.EIO))
    done = apply(host, profile("irq"))
    assert [skip.target for skip in done.skips] == ["irq:1"]


def test_a_partition_that_became_invalid_and_stays_so_is_completely_removed(tmp_path: Path) -> None:
    root = machine(tmp_path)
    found = contents(root)
    host = Cgroups(root)
    apply(host, profile("cpuset"))
    host.verdict = "isolated invalid (Parent is not a partition root)"
    (root / "sys/fs/cgroup/quiet/cpuset.cpus.partition").write_text(host.verdict + "\n")
    assert apply(host, profile("cpuset")).failures
    assert contents(root) == found


def test_two_settings_that_change_each_other_are_a_failure(tmp_path: Path) -> None:
    def rivals(kernel: Kernel, path: str, value: str) -> str:
        for end, other in (("ksm/run", "proc/sys/kernel/nmi_watchdog"), ("nmi_watchdog", "sys/kernel/mm/ksm/run")):
            if path.endswith(end):
                Path(kernel.root, other).write_text("1\n")
        return value

    done = apply(Kernel(machine(tmp_path), rivals), profile("watchdog.nmi", "ksm"))
    assert [item.knob for item in done.failures] == ["watchdog.nmi"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({f"{CPU}/isolated": "2-3"}, "the CPUs are already isolated at boot"),
        ({f"{CPU}/isolated": "3", f"{CPU}/nohz_full": "2-3"}, "the CPUs are already isolated at boot"),
        ({f"{CPU}/nohz_full": "2-3"}, "nohz_full= and the partition together"),
    ],
)
def test_a_partition_that_the_boot_rules_out_is_left_alone_with_the_reason(
    tmp_path: Path, files: dict[str, str], said: str
) -> None:
    root = tree(tmp_path / "m", settings() | files)
    found = contents(root)
    host = Cgroups(root)
    host.verdict = "isolated invalid (partition config conflicts with housekeeping setup)"
    done = apply(host, profile("cpuset"))
    assert not done.failures
    assert done.skips
    assert all(skip.reason.startswith(said) for skip in done.skips)
    restore(host)
    assert contents(root) == found
