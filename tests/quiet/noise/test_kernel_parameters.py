"""Which kernel parameters a remedy may name on a host."""

from __future__ import annotations

from pathlib import Path

from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.noise.kernel_parameters import absent_parameters, boot_parameters
from tests.trees import plant

CPU = "sys/devices/system/cpu"
RCU = "sys/module/rcutree/parameters"


def facts(root: Path, files: dict[str, str]) -> Facts:
    plant(root, {f"{CPU}/online": "0-3", f"{RCU}/blimit": "10", **files})
    return Facts(Reader(str(root)))


def test_a_kernel_without_nohz_full_and_rcu_nocbs_has_neither(tmp_path: Path) -> None:
    assert set(absent_parameters(facts(tmp_path, {}))) == {"nohz_full", "rcu_nocbs"}


def test_a_kernel_may_have_rcu_nocbs_alone(tmp_path: Path) -> None:
    assert set(absent_parameters(facts(tmp_path, {f"{RCU}/rcu_nocb_gp_stride": "-1"}))) == {"nohz_full"}


def test_a_kernel_with_nohz_full_lacks_nothing(tmp_path: Path) -> None:
    assert absent_parameters(facts(tmp_path, {f"{CPU}/nohz_full": "(null)"})) == {}


def test_a_clock_that_is_declared_reliable_is_not_checked_either(tmp_path: Path) -> None:
    assert "tsc" in boot_parameters(facts(tmp_path, {"proc/cmdline": "tsc=reliable"}), 0)


def test_the_last_cpu_may_be_written_as_n(tmp_path: Path) -> None:
    host = facts(tmp_path, {f"{CPU}/possible": "0-7", "proc/cmdline": "rcu_nocbs=2-N"})
    assert "rcu_nocbs" in boot_parameters(host, 7)
    assert "rcu_nocbs" not in boot_parameters(host, 1)


def test_power_efficient_queues_are_in_place_where_the_kernel_says_so(tmp_path: Path) -> None:
    host = facts(tmp_path, {"sys/module/workqueue/parameters/power_efficient": "Y"})
    assert "workqueue.power_efficient" in boot_parameters(host, 0)


def test_parameters_apply_to_the_cpus_that_they_name(tmp_path: Path) -> None:
    host = facts(
        tmp_path, {f"{CPU}/nohz_full": "2-3", "proc/cmdline": "quiet nohz_full=2-3 rcu_nocbs=1 tsc=nowatchdog"}
    )
    assert boot_parameters(host, 3) == {"nohz_full", "rcu_nocbs", "tsc"}
    assert boot_parameters(host, 1) == {"rcu_nocbs", "tsc"}
    assert boot_parameters(host, 0) == {"tsc"}
