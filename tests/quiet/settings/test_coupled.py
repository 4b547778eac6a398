"""Settings whose write makes the kernel change others: one write where one is enough, and everything is restored."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from quiet.host.host import Host
from quiet.settings.apply import apply
from quiet.settings.profile import Profile, check
from quiet.settings.restore import restore
from quiet.settings.verify import plan_now
from tests.quiet.kernels import Kernel, Law, tree
from tests.trees import CPU, contents, cpufreq, machine

CHECKS = "sys/devices/system/machinecheck/machinecheck"
UNCORE = f"{CPU}/intel_uncore_frequency"
BUS = "sys/class/devfreq/dmc"


def wish(cpus: str = "2-3", **knobs: str) -> Profile:
    return check({"cpus": {"isolated": cpus}, "knobs": knobs}, "profile coupled", "coupled")


def there_and_back(root: Path, files: dict[str, str], wanted: Profile, *laws: Law) -> Kernel:
    """Apply, look for drift, restore; all bytes must be as before. Returns the kernel with what was written."""
    kernel = Kernel(tree(root / "machine", machine(cpus=4, cgroup=0) | files), *laws)
    found = contents(Path(kernel.root))
    assert apply(kernel, wanted).failures == ()
    assert contents(Path(kernel.root)) != found
    assert plan_now(kernel, wanted, None)[0].changes == ()
    assert restore(kernel).complete
    assert contents(Path(kernel.root)) == found
    return kernel


def shared(*ends: str) -> Law:
    """A law: what is written to one file with such an end is in all of them."""

    def law(kernel: Kernel, path: str, value: str) -> str:
        if path.endswith(ends):
            name = path.rpartition("/")[2]
            for other in Path(kernel.root).rglob(name):
                other.write_text(value + "\n")
        return value

    return law


def test_machine_checks_are_one_number_that_is_written_once_each_way(tmp_path: Path) -> None:
    files = {f"{CHECKS}{cpu}/check_interval": "100" for cpu in range(4)}
    kernel = there_and_back(tmp_path, files, wish(**{"mce.interval": "quiet"}), shared("check_interval"))
    assert [value for path, value in kernel.written if path.endswith("check_interval")] == ["0", "100"]


def test_a_bias_shared_by_a_package_is_restored_for_all_its_cpus(tmp_path: Path) -> None:
    files = {f"{CPU}/cpu{cpu}/power/energy_perf_bias": "6" for cpu in range(4)}
    there_and_back(tmp_path, files, wish(**{"power.bias": "quiet"}), shared("energy_perf_bias"))


def test_the_parts_of_a_package_regain_their_own_uncore_limits(tmp_path: Path) -> None:
    files = {}
    for name, low in (("package_00_die_00", "800000"), ("uncore00", "800000"), ("uncore01", "1200000")):
        files |= {f"{UNCORE}/{name}/min_freq_khz": low, f"{UNCORE}/{name}/max_freq_khz": "2400000"}

    def all_parts(kernel: Kernel, path: str, value: str) -> str:
        if "/package_" in path:
            for name in ("uncore00", "uncore01"):
                Host.write(kernel, f"/{UNCORE}/{name}/min_freq_khz", value)
        return value

    there_and_back(tmp_path, files, wish(**{"power.uncore": "quiet"}), all_parts)


def test_a_memory_clock_set_by_a_user_is_restored_with_its_governor(tmp_path: Path) -> None:
    names = {"governor": "userspace", "available_governors": "performance userspace", "userspace/set_freq": "528"}
    files = {f"{BUS}/{name}": text for name, text in names.items()}

    def forgets(kernel: Kernel, path: str, value: str) -> str:
        if path.endswith("dmc/governor"):
            Host.write(kernel, f"/{BUS}/userspace/set_freq", "undefined")
        return value

    there_and_back(tmp_path, files, wish(**{"power.bus": "quiet"}), forgets)


def test_a_driver_switched_to_another_mode_regains_all_its_settings(tmp_path: Path) -> None:
    names = {"status": "active", "no_turbo": "1", "min_perf_pct": "40", "max_perf_pct": "80", "hwp_dynamic_boost": "1"}
    files = {f"{CPU}/intel_pstate/{name}": text for name, text in names.items()}
    files |= cpufreq(4, "intel_pstate", energy_performance_preference="balance_power", scaling_max_freq="2000000")
    defaults = {"no_turbo": "0", "min_perf_pct": "26", "max_perf_pct": "100"}
    fresh = {"scaling_governor": "powersave", "scaling_max_freq": "3000000", "scaling_min_freq": "800000"}

    def starts_again(kernel: Kernel, path: str, value: str) -> str:
        if path.endswith("intel_pstate/status"):
            for name, text in defaults.items():
                Host.write(kernel, f"/{CPU}/intel_pstate/{name}", text)
            for number in range(4):
                for name, text in fresh.items():
                    Host.write(kernel, f"/{CPU}/cpufreq/policy{number}/{name}", text)
            boost = Path(f"{kernel.root}/{CPU}/intel_pstate/hwp_dynamic_boost")
            if value == "passive":  # the file goes with the active mode
                boost.unlink()
            else:
                boost.write_text("0\n")
        return value

    knobs = {"cpufreq.driver": "passive", "cpufreq.governor": "quiet", "cpufreq.turbo": "quiet"}
    knobs |= {"cpufreq.hwp_boost": "quiet"}
    there_and_back(tmp_path, files, wish(**knobs), starts_again)


def test_polling_ends_again_if_no_limit_was_set(tmp_path: Path) -> None:
    latency = f"{CPU}/cpu3/power/pm_qos_resume_latency_us"
    kernel = there_and_back(tmp_path, {latency: "0"}, wish("3", **{"idle.cpus": "none"}))
    assert [value for path, value in kernel.written if path == f"/{latency}"] == ["n/a", "0"]


def latent(kernel: Kernel, path: str, value: str) -> str:
    """A lower limit above the upper one stays a request: the file shows the upper one until that rises (6.12)."""
    folder, _, name = path.rpartition("/")
    low, high = f"{folder}/scaling_min_freq", f"{folder}/scaling_max_freq"
    asked = kernel.__dict__.setdefault("asked", {})
    if path not in (low, high):
        return value
    for limit in (low, high):
        asked.setdefault(limit, kernel.text(limit) or "")
    asked[path] = value
    shown = str(min(int(asked[low]), int(asked[high])))
    if name == "scaling_min_freq":
        return shown
    Host.write(kernel, low, shown)
    return value


def crossed(kernel: Kernel, path: str, value: str) -> str:
    """Limits that cross are refused (older kernels)."""
    folder, _, name = path.rpartition("/")
    other = {"scaling_min_freq": "scaling_max_freq", "scaling_max_freq": "scaling_min_freq"}.get(name)
    if other is not None:
        limit = int(kernel.text(f"{folder}/{other}") or 0)
        if (int(value) > limit) if name == "scaling_min_freq" else (int(value) < limit):
            raise OSError(errno.EINVAL, "Invalid argument")
    return value


@pytest.mark.parametrize("law", [latent, crossed])
@pytest.mark.parametrize(("low", "high"), [("800000", "1200000"), ("2800000", "3000000"), ("1200000", "1200000")])
def test_limits_that_must_not_cross_are_restored_from_above_and_from_below(
    tmp_path: Path, law: Law, low: str, high: str
) -> None:
    files = cpufreq(4, "cppc_cpufreq", scaling_min_freq=low, scaling_max_freq=high)
    files |= {f"{CPU}/cpu{cpu}/acpi_cppc/nominal_freq": "2000" for cpu in range(4)}
    kernel = there_and_back(tmp_path, files, wish(**{"cpufreq.limits": "quiet"}), law)
    assert {value for path, value in kernel.written if path.endswith("_freq")} >= {"2000000"}


def test_limits_lowered_by_turbo_are_restored_to_their_original_values(tmp_path: Path) -> None:
    files = {f"{CPU}/intel_pstate/no_turbo": "0", f"{CPU}/intel_pstate/min_perf_pct": "60"}
    files |= cpufreq(4, "intel_pstate", base_frequency="2000000", scaling_min_freq="2400000")

    def without_turbo(kernel: Kernel, path: str, value: str) -> str:
        if path.endswith("no_turbo") and value == "1":
            Host.write(kernel, f"/{CPU}/intel_pstate/min_perf_pct", "40")
            for number in range(4):
                for name in ("scaling_min_freq", "scaling_max_freq"):
                    Host.write(kernel, f"/{CPU}/cpufreq/policy{number}/{name}", "2000000")
        return value

    there_and_back(tmp_path, files, wish(**{"cpufreq.turbo": "quiet"}), without_turbo)


def test_a_policys_boost_is_restored_after_that_of_the_machine(tmp_path: Path) -> None:
    files = {f"{CPU}/cpufreq/boost": "1"} | cpufreq(4, "amd-pstate", boost="1")

    def the_machines_first(kernel: Kernel, path: str, value: str) -> str:
        if (
            path.endswith("/boost")
            and "/policy" in path
            and value == "1"
            and kernel.text(f"/{CPU}/cpufreq/boost") == "0"
        ):
            raise OSError(errno.EINVAL, "Invalid argument")
        if path.endswith("cpufreq/boost"):
            for number in range(4):
                Host.write(kernel, f"/{CPU}/cpufreq/policy{number}/boost", value)
        return value

    there_and_back(tmp_path, files, wish(**{"cpufreq.turbo": "quiet"}), the_machines_first)


def test_a_workqueues_requested_mask_is_restored_and_not_the_effective_one(tmp_path: Path) -> None:
    base = "sys/devices/virtual/workqueue/cpumask"

    def without_the_partition(kernel: Kernel, path: str, value: str) -> str:
        if path == f"/{base}":
            Host.write(kernel, f"/{base}_requested", value)
            return f"{int(value, 16) & 0x7:x}"
        return value

    files = {base: "7", f"{base}_requested": "f"}
    kernel = there_and_back(tmp_path, files, wish("2", workqueue="quiet"), without_the_partition)
    assert kernel.written[-1] == (f"/{base}", "7")
