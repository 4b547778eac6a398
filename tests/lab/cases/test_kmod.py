"""The kernel module in real kernels: its measurements are right, refused requests leave no trace, and it unloads."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from tests.lab.guest.kmod import BAD, FUZZED, PARAMS, TRIALS
from tests.lab.harness import kmod
from tests.lab.harness.boot import boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.model import Machine
from tests.lab.harness.once import once

pytestmark = [pytest.mark.lab]
TIMEOUT_S = 1200
on_both_kernels = pytest.mark.parametrize("machine", ["isolated-6.1", "isolated-6.12"], indirect=True)
ALARMS = re.compile(
    r"\b(WARNING|BUG|Oops|Call Trace|stalls?|stalled|lockup|blocked for|scheduling while|protection fault)\b"
)
SERIES = [(name, stopped) for name in PARAMS for stopped in (False, True)]
REASONS = {
    "EINVAL 1": ["version"],
    "EINVAL 2": ["flags", "counter", "region", "warmup"],
    "EINVAL 3": ["workload", "name without end"],
    "EINVAL 4": [
        *("no parameter", "too many parameters", "parameter of nothing"),
        *("sieve beyond 32 bits", "sieve's rewarm", "no buffer", "buffer above 1 GiB"),
        *("links that overlap", "no such pattern"),
    ],
    "EINVAL 5": ["no trials", "too many trials"],
    "ENODEV 6": ["no such CPU"],
    "EINVAL 7": ["another CPU"],
    "ENOENT 10": ["cycles"],
    "EFAULT 0": ["no room"],
}
EXPECTED = {what: reason for reason, requests in REASONS.items() for what in requests}


@once
def report(machine: Machine) -> dict[str, Any]:
    try:
        load = kmod.loading(machine)
    except PackageError as error:
        pytest.skip(f"no lab: {error}")
    result = boot(machine, f"{load}exec python -m tests.lab.guest.kmod", timeout=TIMEOUT_S)
    print(f"{machine.name}: {result.seconds:.0f} s with the boot\n{result.output}")
    assert result.code == 0, result.output
    found = json.loads(result.files["report.json"])
    assert "broke" not in found, found["broke"]
    return dict(found)


@on_both_kernels
@pytest.mark.parametrize(("name", "stopped"), SERIES)
def test_workloads_return_the_correct_results_in_the_kernel(machine: Machine, name: str, stopped: bool) -> None:
    series = report(machine)["measured"][f"{name} {stopped}"]
    assert series["outputs"] == [series["expected"]]
    assert len(series["values"]) == TRIALS
    assert series["cut_short"] == ""
    assert 0 < series["overhead"] < min(series["values"])
    assert max(series["values"]) > 0 < series["longest_ns"] < 100_000_000


@on_both_kernels
def test_without_a_pmu_the_clock_is_read_and_the_answer_states_it(machine: Machine) -> None:
    series = report(machine)["measured"]["hash False"]
    assert series["counter"] == "tsc"
    assert series["why"].startswith("cycles unavailable in the kernel: no such hardware counter here")


@on_both_kernels
def test_a_request_that_would_take_too_long_is_refused_soon_with_a_smaller_one(machine: Machine) -> None:
    found = report(machine)["too_long"]
    assert re.search(r"^Refused: hash n=.* at most 100 ms is allowed; try --param n=\d+$", found["said"])
    assert found["took_s"] < 120  # of 2**40 rounds it would take years
    assert found["fitting"] == 1
    assert "interrupts would be off for" in found["rewarm"]


@on_both_kernels
@pytest.mark.parametrize("what", BAD)
def test_a_bad_request_is_refused_with_its_reason(machine: Machine, what: str) -> None:
    error, reason, _ = report(machine)["refused"][what]
    assert f"{error} {reason}" == EXPECTED[what]


@on_both_kernels
def test_after_all_bad_requests_a_good_one_is_served(machine: Machine) -> None:
    assert report(machine)["refused"]["good"] == [0, 0, 10]


@on_both_kernels
def test_only_root_may_measure_and_only_bound_to_the_cpu(machine: Machine) -> None:
    found = report(machine)["refused"]
    assert found["not root"] == ["EPERM", 0, 0]
    assert found["not root, open"].startswith("Refused: --in-kernel needs root")
    assert found["not bound"] == ["EINVAL", 7, 0]
    assert report(machine)["not an ioctl of ours"] == "ENOTTY"


@on_both_kernels
def test_one_process_measures_at_a_time_and_the_module_stays_loaded(machine: Machine) -> None:
    found = report(machine)["disturbed"]
    assert found["busy"].startswith("Refused: another process is measuring")
    assert found["rmmod while used"] != 0


@on_both_kernels
def test_a_measuring_process_can_be_killed(machine: Machine) -> None:
    assert report(machine)["disturbed"]["killed_s"] < 60  # all its trials would take far longer


@on_both_kernels
def test_a_cpu_that_goes_offline_ends_the_request_with_the_trials_so_far(machine: Machine) -> None:
    found = report(machine)["disturbed"]
    done, why = found["offline"]
    assert 0 < done < 200_000
    assert why.startswith("the CPU went offline")
    assert found["on it"].startswith("UsageError: CPU 3 is not online")
    assert found["online again"] == 3


@on_both_kernels
def test_random_requests_do_no_harm(machine: Machine) -> None:
    ends = report(machine)["fuzzed"]["ends"]
    assert sum(ends.values()) == FUZZED
    assert len(ends) > 5, ends


@on_both_kernels
def test_the_module_unloads_and_the_kernel_logs_no_warning(machine: Machine) -> None:
    found = report(machine)
    assert found["rmmod"] == 0
    assert not found["device left"]
    assert "cbench: loading out-of-tree module" in found["dmesg"]
    assert [line for line in found["dmesg"].splitlines() if ALARMS.search(line)] == []


# With Linux 6.1 test_exact.py has this and more.
on_exact_machines = pytest.mark.parametrize("machine", ["exact-6.12"], indirect=True)
RUN = "cbench run hash sieve --param n=10000 --warmup 5 --cpu 0 --json --trials"
EXACT = f"{RUN} 1000 --in-kernel >$LAB_OUT/off && {RUN} 300 --in-kernel --stop-machine >$LAB_OUT/stopped && "
EXACT += f"{RUN} 50 >$LAB_OUT/user && rmmod cbench; dmesg >$LAB_OUT/dmesg"
CONSTANT = 4  # cycles: what stands between the two reads beside the function, and at its beginning and end


@once
def exact(machine: Machine) -> dict[str, str]:
    try:
        load = kmod.loading(machine)
    except PackageError as error:
        pytest.skip(f"no lab: {error}")
    result = boot(machine, load + EXACT, timeout=TIMEOUT_S)
    assert result.code == 0, result.output
    return result.files


def results(machine: Machine, which: str) -> dict[str, dict[str, Any]]:
    return {each["workload"]: each for each in json.loads(exact(machine)[which])["results"]}


@on_exact_machines
@pytest.mark.parametrize("workload", ["hash", "sieve"])
@pytest.mark.parametrize(("which", "trials"), [("off", 1000), ("stopped", 300)])
def test_with_interrupts_off_every_trial_takes_the_same_cycles(
    machine: Machine, workload: str, which: str, trials: int
) -> None:
    assert json.loads(exact(machine)[which])["counter"]["name"] == "cycles"
    series = results(machine, which)[workload]["trials"]
    assert len(series) == trials
    assert len(set(series)) == 1, sorted(set(series))


@on_exact_machines
def test_user_space_and_the_kernel_agree_except_for_a_constant(machine: Machine) -> None:
    kernel, user = results(machine, "off"), results(machine, "user")
    differences = {user[name]["floor"] - kernel[name]["floor"] for name in ("hash", "sieve")}
    assert len(differences) == 1, differences
    assert abs(differences.pop()) <= CONSTANT


@on_exact_machines
def test_the_arm64_kernels_log_no_warning(machine: Machine) -> None:
    log = exact(machine)["dmesg"]
    assert "cbench: loading out-of-tree module" in log
    assert [line for line in log.splitlines() if ALARMS.search(line)] == []
