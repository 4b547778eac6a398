"""The exact machine is an oracle: uninterrupted work takes the same number of cycles, to the cycle."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.lab.harness import kmod
from tests.lab.harness.boot import Machine, Result, boot
from tests.lab.harness.debian import PackageError
from tests.lab.harness.once import once

pytestmark = pytest.mark.lab

TIMEOUT_S = 1800  # far more than a busy machine takes
EXACT = pytest.mark.parametrize("machine", ["exact"], indirect=True)
A72 = pytest.mark.parametrize("machine", ["a72"], indirect=True)
TRIALS = 10_000
SIZES = {"hash": (1000, 3000), "sieve": (1000, 2000)}
# How many cycles user space takes longer than the kernel. After the call it loads which counter to read, compares
# and branches: three instructions. Kernel 6.1 has three others: the return address is signed and checked, which shifts
# the loop and takes one instruction to align it again (docs/exact-machine.md).
AGREEMENT = 0
# Without the command line around it: the boot and the trials are what has to be short.
IN_KERNEL = """
python - <<'END' >$LAB_OUT/series
import json
from cbench.measure.inkernel import client as inkernel
print(json.dumps({name: inkernel.measure(name, {"n": 1000}, 0, 1000, 5, False).values for name in ("hash", "sieve")}))
END
"""
# A terminal at stderr, which the progress bar is drawn on; `drawn` has what was drawn.
TERMINAL = """
import pty, sys
with open(sys.argv[1], "wb") as drawn:
    def read(terminal):
        data = __import__("os").read(terminal, 4096)
        drawn.write(data)
        return data
    sys.exit(pty.spawn(["bash", "-c", sys.argv[2]], read) >> 8)
"""
RUN = "cbench run --cpu 0 --no-trace --json"
VISIT = f"""
{RUN} hash --param n=10000 --trials {TRIALS} >$LAB_OUT/many || exit 1
cbench list --json >$LAB_OUT/list
{RUN} hash sieve --param n=1000 --trials 1000 --warmup 5 --in-kernel >$LAB_OUT/kernel-1000 || exit 1
{RUN} sieve --param n=2000 --trials 1000 --warmup 5 --in-kernel >$LAB_OUT/kernel-2000 || exit 1
{RUN} hash --param n=3000 --trials 1000 --warmup 5 --in-kernel >$LAB_OUT/kernel-3000 || exit 1
{RUN} hash sieve --param n=1000 --trials 100000 --until-clean 1000 >$LAB_OUT/user-1000 || exit 1
{RUN} sieve --param n=2000 --trials 200 --warmup 5 >$LAB_OUT/user-2000 || exit 1
{RUN} hash --param n=3000 --trials 1000 >$LAB_OUT/user-3000 || exit 1
export TERM=xterm
python -c '{TERMINAL}' $LAB_OUT/drawn "{RUN} hash --param n=3000 --trials 1000 >$LAB_OUT/bar-3000" || exit 1
"""
# One CPU: with a detector that spins on each of twelve the emulator, which runs all CPUs in turn, takes minutes. Gaps
# from 1 us on: the shorter ones are the other CPUs' instructions. Not the first detector there: for that one the kernel
# makes a worker thread of this CPU, and interrupts it once.
ISOLATED_CPU = 5
ISOLATED = f"""
quiet apply --profile bench --cpus {ISOLATED_CPU} || exit 1
python -m tests.lab.guest.isolated {ISOLATED_CPU} 10000 1000 >$LAB_OUT/trials || exit 1
quiet verify --duration 0.1 >/dev/null
quiet verify --duration 0.3 --threshold 1us --json >$LAB_OUT/verify
[ $? -le 1 ] || exit 1
quiet restore
"""


def loading(machine: Machine) -> str:
    try:
        return kmod.loading(machine)
    except PackageError as error:
        pytest.skip(f"no lab: {error}")


@once
def visit(machine: Machine) -> Result:
    result = boot(machine, loading(machine) + VISIT, timeout=TIMEOUT_S)
    print(f"{machine.name}: {result.seconds:.0f} s with the boot")
    assert result.code == 0, result.output
    return result


def lists(machine: Machine, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(visit(machine).files[name])
    return found


def measured(machine: Machine, name: str, workload: str) -> dict[str, Any]:
    (found,) = (each for each in lists(machine, name)["results"] if each["workload"] == workload)
    return dict(found)


def clean(result: dict[str, Any]) -> list[int]:
    polluted = {each["trial"] for each in result["polluted"]}
    return [value for number, value in enumerate(result["trials"]) if number not in polluted]


@EXACT
def test_cycles_are_counted_and_read_in_user_space(machine: Machine) -> None:
    (cycles,) = (each for each in lists(machine, "list")["counters"] if each["name"] == "cycles")
    assert cycles["available"]
    assert cycles["method"] == "perf_event, read in user space"


@EXACT
def test_every_uninterrupted_trial_takes_the_same_number_of_cycles(machine: Machine) -> None:
    run = measured(machine, "many", "hash")
    assert len(run["trials"]) == TRIALS
    assert len(Counter(clean(run))) == 1, Counter(clean(run)).most_common(5)


@EXACT
def test_every_trial_that_is_marked_differs_and_has_a_cause(machine: Machine) -> None:
    run = measured(machine, "many", "hash")
    exact = clean(run)[0]
    assert TRIALS / 100 < len(run["polluted"]) < TRIALS / 10  # a tick takes 40 trials' time, here and there more
    assert all(each["cause"] for each in run["polluted"])
    assert all(run["trials"][each["trial"]] > exact for each in run["polluted"])


@EXACT
@pytest.mark.parametrize("workload", ["hash", "sieve"])
def test_until_a_thousand_clean_trials_ends_with_range_0(machine: Machine, workload: str) -> None:
    run = measured(machine, "user-1000", workload)
    assert run["clean_trials"]["reached"]
    assert run["clean_trials"]["count"] >= 1000
    assert run["clean_trials"]["range"] == 0


@EXACT
@pytest.mark.parametrize(("workload", "n"), [(name, n) for name, sizes in SIZES.items() for n in sizes])
def test_user_space_and_the_kernel_differ_by_one_constant(machine: Machine, workload: str, n: int) -> None:
    kernel, user = (measured(machine, f"{where}-{n}", workload) for where in ("kernel", "user"))
    assert kernel["range"] == 0
    assert kernel["params"] == user["params"] == {"n": n}
    assert clean(user)[0] - kernel["mode"] == AGREEMENT


@EXACT
def test_a_progress_bar_does_not_affect_the_trials(machine: Machine) -> None:
    assert "\x1b[" in visit(machine).files["drawn"]
    assert "hash" in visit(machine).files["drawn"]
    without, with_bar = (measured(machine, f"{which}-3000", "hash") for which in ("user", "bar"))
    assert set(clean(without)) == set(clean(with_bar)) == {without["mode"]}


@EXACT
@pytest.mark.parametrize("boots", [2, pytest.param(10, marks=pytest.mark.long)])
def test_with_interrupts_off_the_trials_of_all_boots_are_equal(machine: Machine, boots: int) -> None:
    wanted = {name: [measured(machine, "kernel-1000", name)["mode"]] * 1000 for name in ("hash", "sieve")}
    load, seconds = loading(machine), 0.0
    for _ in range(boots):
        result = boot(machine, load + IN_KERNEL, timeout=TIMEOUT_S)
        assert result.code == 0, result.output
        assert json.loads(result.files["series"]) == wanted
        seconds += result.seconds
    print(f"{boots} boots: {seconds:.0f} s")


@once
def isolated(machine: Machine) -> Result:
    result = boot(machine, ISOLATED, timeout=TIMEOUT_S)
    print(f"{machine.name}: {result.seconds:.0f} s with the boot")
    assert result.code == 0, result.output
    return result


@A72
def test_no_interrupt_comes_to_an_isolated_cpu_during_a_thousand_trials(machine: Machine) -> None:
    found = json.loads(isolated(machine).files["trials"])
    assert found["counter"] == "cycles"
    assert len(found["values"]) >= 1000
    assert any(found["before"].values())
    assert found["after"] == found["before"]


@A72
def test_verify_reports_no_interrupt_on_the_isolated_cpu(machine: Machine) -> None:
    found = json.loads(isolated(machine).files["verify"])
    assert found["drift"] == []
    assert list(found["noise"]["cpus"]) == [str(ISOLATED_CPU)]
    interrupts = found["noise"]["cpus"][str(ISOLATED_CPU)]["interrupts"]
    assert {name: each["counted"] for name, each in interrupts.items() if each["counted"]} == {}
    assert "nothing left changed" in isolated(machine).output
