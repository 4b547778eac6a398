"""The kernel's own counts: its files, parsed."""

from __future__ import annotations

from pathlib import Path

from quiet.host.reader import Reader
from quiet.noise import counters
from tests.trees import plant

INTERRUPTS = """\
            CPU0       CPU3
   1:          5          6   IO-APIC   1-edge      i8042
  27:          0       4711   PCI-MSIX-0000:00:03.0   1-edge      virtio0-input.0
 NMI:          1          2   Non-maskable interrupts
 LOC:         70         80   Local timer interrupts
IPI0:          3          4   Rescheduling interrupts
 ERR:          9
 MIS:          0"""
SOFTIRQS = """\
                    CPU0       CPU3
          HI:          1          0
       TIMER:        100        200
         RCU:          7          8"""
STAT = """\
cpu  1 2 3 4 5 6 7 8 9 10
cpu0 1 2 3 4 5 6 7 80 9 10
cpu3 1 2 3 4 5 6 7 90 9 10
intr 12345 0 0
ctxt 5"""


def test_the_lines_are_counted_for_each_cpu_of_the_header() -> None:
    lines, counts = counters.interrupts(INTERRUPTS)
    assert counts[0] == {"1": 5, "27": 0, "NMI": 1, "LOC": 70, "IPI0": 3}
    assert counts[3] == {"1": 6, "27": 4711, "NMI": 2, "LOC": 80, "IPI0": 4}
    assert set(lines) == set(counts[0])


def test_a_line_has_its_description() -> None:
    lines, _ = counters.interrupts(INTERRUPTS)
    assert lines["27"] == "virtio0-input.0"
    assert lines["LOC"] == "Local timer interrupts"


def test_machine_wide_counts_belong_to_no_cpu() -> None:
    lines, _ = counters.interrupts(INTERRUPTS)
    assert not {"ERR", "MIS"} & set(lines)


def test_an_empty_file_has_no_lines() -> None:
    assert counters.interrupts("") == ({}, {})
    assert counters.stolen("") == {}


def test_softirqs_are_by_name() -> None:
    assert counters.interrupts(SOFTIRQS)[1][3] == {"HI": 0, "TIMER": 200, "RCU": 8}


def test_stolen_time_is_each_cpus_own_and_not_the_sum() -> None:
    assert counters.stolen(STAT) == {0: 80, 3: 90}


def test_a_kernel_that_does_not_know_stolen_time_has_none() -> None:
    assert counters.stolen("cpu0 1 2 3 4 5 6 7") == {}


def test_one_reading_holds_the_asked_cpus_and_when_it_was(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/interrupts": INTERRUPTS, "proc/softirqs": SOFTIRQS, "proc/stat": STAT})
    times = iter([100, 200])
    found = counters.read(Reader(str(tmp_path)), frozenset({3}), lambda: next(times))
    assert (found.begin, found.end) == (100, 200)
    assert set(found.interrupts) == set(found.softirqs) == set(found.stolen) == {3}
    assert (found.interrupts[3]["27"], found.softirqs[3]["RCU"], found.stolen[3]) == (4711, 8, 90)


def test_a_cpu_that_is_in_no_file_has_counted_nothing(tmp_path: Path) -> None:
    plant(tmp_path, {"proc/interrupts": INTERRUPTS})
    found = counters.read(Reader(str(tmp_path)), frozenset({7}), lambda: 0)
    assert (found.interrupts, found.softirqs, found.stolen) == ({7: {}}, {7: {}}, {})


def test_this_hosts_own_files_are_understood() -> None:
    found = counters.read(Reader(), frozenset({0}), lambda: 0)
    assert found.interrupts[0]
    assert all(label and text for label, text in found.lines.items() if not label.isdecimal())
    assert {"TIMER", "SCHED", "RCU"} <= set(found.softirqs[0])
