"""Disturbances, from the kernel's counts before and after."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cbench.external.disturbance import STOLEN, WAITED, StartCounts, new_interrupts, start_counts, stolen, trial_of
from cbench.external.process import ProgramEnd
from cbench.model import FAULT, MIGRATION, SWITCH

QUIET = ProgramEnd(
    code=0,
    wall_ns=10_000_000,
    user_us=9000,
    system_us=500,
    voluntary=1,
    involuntary=0,
    minor_faults=50,
    major_faults=0,
    begin=1,
    end=2,
    ran_ns=9_500_000,
    waited_ns=20_000,
    migrations=0,
    errors="",
)
NONE = StartCounts()
BEFORE = """           CPU0       CPU2
  4:        100          7   IO-APIC   4-edge      ttyS0, with a comma
 36:        200          1  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:       1000       2000   Local timer interrupts
ERR:          0
"""
AFTER = """           CPU0       CPU2
  4:        101          7   IO-APIC   4-edge      ttyS0, with a comma
 36:        200          4  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0
LOC:       1010       2005   Local timer interrupts
ERR:          1
"""


def causes(ended: ProgramEnd, stolen_ms: int | None = 0, start: StartCounts = NONE) -> list[tuple[str, int]]:
    return [(cause.kind, cause.count) for cause in trial_of(ended, stolen_ms, {}, {}, start).causes]


def test_an_undisturbed_trial_has_no_cause_and_all_counts() -> None:
    trial = trial_of(QUIET, 0, {"LOC (Local timer interrupts)": 3}, {"cycles": 7}, NONE)
    assert not trial.polluted
    assert trial.value == QUIET.wall_ns
    assert trial.counts["cycles"] == 7
    assert trial.counts["stolen_ms"] == 0
    assert trial.interrupts == {"LOC (Local timer interrupts)": 3}
    assert (trial.context_switches, trial.page_faults) == (1, 50)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"involuntary": 2}, [(SWITCH, 2)]),
        ({"waited_ns": 2_000_000}, [(WAITED, 1)]),
        ({"migrations": 1}, [(MIGRATION, 1)]),
        ({"major_faults": 4}, [(FAULT, 4)]),
    ],
)
def test_each_kind_of_disturbance_is_a_cause_with_its_count(
    changed: dict[str, int], expected: list[tuple[str, int]]
) -> None:
    assert causes(replace(QUIET, **changed)) == expected


def test_time_kept_by_the_host_is_a_cause_and_unknown_steal_is_none() -> None:
    assert causes(QUIET, stolen_ms=10) == [(STOLEN, 1)]
    trial = trial_of(QUIET, None, {}, {}, NONE)
    assert not trial.polluted
    assert "stolen_ms" not in trial.counts


def test_a_short_wait_and_unknown_figures_are_not_a_cause() -> None:
    assert causes(replace(QUIET, waited_ns=90_000)) == []
    trial = trial_of(replace(QUIET, waited_ns=None, ran_ns=None, migrations=None), 0, {}, {}, NONE)
    assert not trial.polluted
    assert "waited_ns" not in trial.counts


def test_events_of_every_start_are_not_a_disturbance() -> None:
    each = replace(QUIET, involuntary=1, migrations=1, waited_ns=3_000_000)
    usual = start_counts([each, each, each, replace(each, involuntary=5, migrations=2)])
    assert usual == StartCounts(1, 1, 3_000_000)
    assert causes(each, start=usual) == []
    assert causes(replace(each, involuntary=2), start=usual) == [(SWITCH, 1)]
    assert start_counts([]) == NONE


def test_interrupts_are_those_of_the_commands_cpus_by_line() -> None:
    assert new_interrupts(BEFORE, AFTER, {0, 2}) == {
        "4 (ttyS0, with a comma)": 1,
        "36 (virtio1-req.0)": 3,
        "LOC (Local timer interrupts)": 15,
        "ERR": 1,
    }
    assert new_interrupts(BEFORE, AFTER, {2}) == {"36 (virtio1-req.0)": 3, "LOC (Local timer interrupts)": 5}
    assert new_interrupts(BEFORE, BEFORE, {0, 2}) == {}


def test_nothing_is_concluded_if_an_interrupt_line_is_new_or_there_are_none() -> None:
    assert new_interrupts(BEFORE, AFTER + " 99:  1  1  x  y\n", {0, 2}) == {}
    assert new_interrupts("", "", {0}) == {}


def test_steal_is_that_of_the_commands_cpus() -> None:
    text = "cpu  1 2 3 4 5 6 7 80 9 9\ncpu0 1 2 3 4 5 6 7 30 0 0\ncpu1 1 2 3 4 5 6 7 50 0 0\nintr 5 8\n"
    assert stolen(text, {0}) == 30
    assert stolen(text, {0, 1}) == 80
    assert stolen(text, {5}) is stolen("", {0}) is None
