"""Settings of the kernel that are coupled: writing one changes another, or is ignored. All must be restored."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from quiet.settings.apply import apply
from quiet.settings.profile import Profile, check
from quiet.settings.restore import restore
from quiet.settings.verify import plan_now
from tests.quiet.kernels import Cgroups, Kernel, profile
from tests.trees import contents, machine, plant

VM = "/proc/sys/vm/"
SYS = "/proc/sys/kernel/"


def twins(kernel: Kernel, path: str, value: str) -> str:
    """dirty_ratio and dirty_bytes are one setting in two units (admin-guide/sysctl/vm.rst)."""
    if not path.startswith(VM + "dirty_"):
        return value
    if path.endswith("_bytes") and int(value) < 8192:
        raise OSError(errno.EINVAL, "Invalid argument")
    for ours, other in (("_bytes", "_ratio"), ("_ratio", "_bytes")):
        if path.endswith(ours) and kernel.text(path) != value:
            Path(kernel.root + path.removesuffix(ours) + other).write_text("0\n")
    return value


@pytest.mark.parametrize(("ratio", "size"), [("20", "0"), ("0", "268435456"), ("60", "0")])
def test_a_limit_in_bytes_is_restored_in_bytes_and_one_in_percent_in_percent(
    tmp_path: Path, ratio: str, size: str
) -> None:
    found = {"dirty_ratio": ratio, "dirty_bytes": size, "dirty_background_ratio": "0", "dirty_background_bytes": "9999"}
    plant(tmp_path, machine(cgroup=0) | {VM + name: text for name, text in found.items()})
    before = contents(tmp_path)
    kernel, wanted = Kernel(tmp_path, twins), profile("writeback.limit", "writeback.background")
    assert apply(kernel, wanted).failures == ()
    assert (int(kernel.text(VM + "dirty_ratio") or 0) >= 40, kernel.text(VM + "dirty_bytes")) == (True, "0")
    assert plan_now(kernel, wanted, None)[0].changes == ()
    assert restore(kernel).complete
    assert contents(tmp_path) == before


def test_the_other_numbers_of_printk_stay_and_all_four_are_restored(tmp_path: Path) -> None:
    plant(tmp_path, machine(cgroup=0) | {SYS + "printk": "7\t5\t2\t6"})
    before = contents(tmp_path)
    kernel = Kernel(tmp_path)
    apply(kernel, profile("console.loglevel"))
    assert kernel.text(SYS + "printk") == "1\t5\t2\t6"
    assert restore(kernel).complete
    assert contents(tmp_path) == before


def test_a_number_of_printk_that_another_program_changes_is_a_conflict(tmp_path: Path) -> None:
    plant(tmp_path, machine(cgroup=0) | {SYS + "printk": "7\t5\t2\t6"})
    kernel = Kernel(tmp_path)
    apply(kernel, profile("console.loglevel"))
    Path(kernel.root + SYS + "printk").write_text("1\t5\t2\t4\n")
    outcome = restore(kernel)
    assert [conflict.target for conflict in outcome.conflicts] == [f"file:{SYS}printk"]


class Detectors(Kernel):
    """Both lockup detectors of kernel/watchdog.c before late 2024: reading a switch sets it to what runs."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.asked = {"watchdog": True, "soft_watchdog": True, "nmi_watchdog": False}
        self.on = {"soft_watchdog"}

    def text(self, path: str) -> str | None:
        """What runs, and from now on also what was asked for."""
        name = path.removeprefix(SYS)
        if name not in self.asked:
            return super().text(path)
        self.asked[name] = bool(self.on & ({name} if name != "watchdog" else self.asked.keys()))
        return str(int(self.asked[name]))

    def write(self, path: str, value: str) -> None:
        """A switch that changes starts or stops what is then asked for."""
        name = path.removeprefix(SYS)
        if name not in self.asked:
            super().write(path, value)
        elif self.asked[name] != (value == "1"):
            self.asked[name] = value == "1"
            wanted = {each for each in ("soft_watchdog", "nmi_watchdog") if self.asked[each]}
            self.on = wanted if self.asked["watchdog"] else set()


def test_a_detector_is_restored_even_after_a_read_of_the_common_switch(tmp_path: Path) -> None:
    kernel = Detectors(plant(tmp_path, machine(cgroup=0) | {SYS + "watchdog": "1"}))
    assert apply(kernel, profile("watchdog.soft")).failures == ()
    assert kernel.text(SYS + "watchdog") == "0"  # as `sysctl -a` does
    kernel.write(SYS + "soft_watchdog", "1")
    assert kernel.text(SYS + "soft_watchdog") == "0"  # the trap: on its own it has no effect any more
    assert restore(kernel).complete
    assert kernel.on == {"soft_watchdog"}


class Swapping(Cgroups):
    """Cgroups with the memory controller: its files come with it."""

    def write(self, path: str, value: str) -> None:
        """A group has its limit while the controller is on."""
        super().write(path, value)
        if path.endswith("/cgroup.subtree_control"):
            limit = Path(self.root + "/sys/fs/cgroup/quiet/memory.swap.max")
            if "memory" in (self.text(path) or "").split() and limit.parent.exists():
                limit.write_text("max\n")


def swapping(root: Path) -> Swapping:
    lines = "Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 999 0 -2"
    return Swapping(plant(root, machine() | {"proc/swaps": lines, "sys/fs/cgroup/cgroup.subtree_control": "cpu io"}))


def limited() -> Profile:
    knobs = {"cpuset": "quiet", "swap.cgroup": "quiet"}
    return check({"name": "test", "cpus": {"isolated": "3"}, "knobs": knobs}, "test", "test")


def test_the_group_of_the_isolated_cpus_is_not_swapped_and_is_restored(tmp_path: Path) -> None:
    kernel = swapping(tmp_path)
    before = contents(tmp_path)
    assert apply(kernel, limited()).failures == ()
    assert kernel.text("/sys/fs/cgroup/quiet/memory.swap.max") == "0"
    assert plan_now(kernel, limited(), None)[0].changes == ()
    assert restore(kernel).complete
    assert contents(tmp_path) == before


def test_without_the_partition_no_limit_is_set(tmp_path: Path) -> None:
    kernel = swapping(tmp_path)
    kernel.verdict = "isolated invalid (partition config conflicts with housekeeping setup)"
    before = contents(tmp_path)
    done = apply(kernel, limited())
    assert done.failures == ()
    assert "requires the knob cpuset" in {skip.target: skip.reason for skip in done.skips}["cgroup:/+memory"]
    assert restore(kernel).complete
    assert contents(tmp_path) == before


def test_without_the_group_at_all_the_controller_stays_off_too(tmp_path: Path) -> None:
    kernel = swapping(tmp_path)
    before = contents(tmp_path)
    knobs = {"cpuset": "leave", "swap.cgroup": "quiet"}
    done = apply(kernel, check({"cpus": {"isolated": "3"}, "knobs": knobs}, "test", "test"))
    assert (done.changes, done.failures) == ((), ())
    assert "the cgroup does not exist" in done.skips[-1].reason
    assert contents(tmp_path) == before
