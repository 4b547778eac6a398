"""A report's facts about its host, and the choice of the CPU."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cbench.machine import describe
from cbench.machine.cpus import choose_cpus, default_cpu
from cbench.model import Counter, Result, Session, Settling, Trial
from cbench.workloads.registry import find
from quiet.host.reader import Reader
from quiet.machine.affinity import reachable
from tests.quiet.machine.test_virtualization import CASES, Case
from tests.trees import plant

CPUINFO = "processor\t: 0\nmodel name\t: AMD EPYC\nflags\t\t: fpu sse\n"
SETTLED = Settling((1,) * 20, (), True)
SESSION = Session(
    Counter("tsc", "TSC ticks", True, "a clock", "read", 25, 49), (Trial(1, 1),), SETTLED, "all", "fixed", "none",
    "/proc/interrupts", 0,
)  # fmt: skip


def result(isolated: bool, session: Session = SESSION) -> Result:
    return Result(find("hash"), {"n": 1}, 0, isolated, (session,))


def test_fields_of_cpuinfo_are_found_by_name() -> None:
    assert describe.cpuinfo_field(CPUINFO, "model name", "CPU part") == "AMD EPYC"
    assert describe.cpuinfo_field("CPU part\t: 0xd0c\n", "model name", "CPU part") == "0xd0c"
    assert describe.cpuinfo_field("", "model name") == ""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.machine)
def test_cbench_and_quiet_agree_on_which_machines_are_virtual(case: Case, tmp_path: Path) -> None:
    assert describe.virtual(Reader(str(plant(tmp_path, case.files)))) == bool(case.hypervisor)


def test_the_host_counts_as_quiet_only_when_all_tested_cpus_are_isolated() -> None:
    assert describe.describe([2, 3], frozenset({2, 3})).quiet is True
    assert describe.describe([0, 3], frozenset({2, 3})).quiet is False
    assert describe.describe([0], frozenset()).quiet is False


def test_measuring_only_on_ordinary_cpus_is_reported_with_a_remedy() -> None:
    assert "not isolated: to isolate the CPUs, start this with `quiet run -- cbench ...`" in describe.missing(
        [result(False)]
    )
    assert not any("not isolated" in line for line in describe.missing([result(False), result(True)]))


def test_unlocked_memory_and_random_addresses_are_reported() -> None:
    session = Session(
        SESSION.counter, SESSION.trials, SESSION.settling, "none (Cannot allocate memory)",
        "random (Operation not permitted)", "none", "Permission denied", 0,
    )  # fmt: skip
    said = "\n".join(describe.missing([result(True, session)]))
    assert "RLIMIT_MEMLOCK" in said
    assert "addresses random" in said
    assert "interrupts not counted" in said


@pytest.mark.parametrize(
    ("isolated", "allowed", "chosen"),
    [({2, 3}, {0, 1, 2, 3}, 2), ({2, 3}, {0, 3}, 3), ({2}, {0, 1}, 1), (set(), {0, 1, 5}, 5), (set(), {0}, 0)],
)
def test_the_first_usable_isolated_cpu_is_chosen_else_the_last(
    isolated: set[int], allowed: set[int], chosen: int
) -> None:
    assert default_cpu(frozenset(isolated), frozenset(allowed)) == chosen


def test_cpus_keep_the_order_of_the_request() -> None:
    last = max(os.sched_getaffinity(0))
    assert choose_cpus([str(last), "0", str(last)], frozenset()) == list(dict.fromkeys([last, 0]))


def test_a_cpu_outside_the_own_affinity_is_reachable_and_the_affinity_is_kept() -> None:
    before = os.sched_getaffinity(0)
    if len(before) < 2:
        return
    last = max(before)
    try:
        os.sched_setaffinity(0, before - {last})
        assert reachable(frozenset({last})) == {last}
        assert os.sched_getaffinity(0) == before - {last}
    finally:
        os.sched_setaffinity(0, before)
