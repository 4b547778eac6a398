"""Interrupt counts by CPU, from texts as kernels print them."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from cbench._cbench import ffi, lib
from cbench.measure.series import line_names
from cbench.stats.verdict import short_name

X86 = """           CPU0       CPU2       CPU5
  8:          1          0         30   IO-APIC   8-edge      rtc0
 27:        100      20000          3  PCI-MSI 524288-edge      virtio1-virtqueues
NMI:          0          0          7   Non-maskable interrupts
LOC:     241187     136823      99999   Local timer interrupts
ERR:          5
MIS:          0
"""

ARM = """           CPU0       CPU1
 11:      73492      66120     GICv3  27 Level     arch_timer
IPI0:       410        382       Rescheduling interrupts
Err:          0
"""


def parse(text: str, cpu: int, room: int = 100) -> tuple[int, list[int], int]:
    data = text.encode()
    counts = ffi.new("uint64_t[]", room)
    table = ffi.new("cb_irq_table *")
    error = lib.cb_irq_parse(data, len(data), cpu, counts, room, table)
    return error, [int(counts[i]) for i in range(table.lines)], int(table.labels)


def test_the_column_is_found_by_its_name_not_its_place() -> None:
    assert parse(X86, 2)[:2] == (0, [0, 20000, 0, 136823, 0, 0])
    assert parse(X86, 5)[:2] == (0, [30, 3, 7, 99999, 0, 0])


def test_a_line_with_one_total_belongs_to_no_cpu() -> None:
    assert parse(X86, 0)[1][-2:] == [0, 0]


@pytest.mark.parametrize("cpu", [1, 3, 4, 6, -1])
def test_an_offline_cpu_has_no_column(cpu: int) -> None:
    assert parse(X86, cpu)[0] == -errno.ENODEV


def test_arm_lines_are_read_too() -> None:
    assert parse(ARM, 1)[:2] == (0, [66120, 382, 0])


def test_more_lines_than_room_are_an_error() -> None:
    assert parse(X86, 0, room=3)[0] == -errno.ENOSPC


@pytest.mark.parametrize("text", ["", "\n", "CPU", "CPU0", "garbage\n1: 2\n"])
def test_text_without_the_cpu_in_its_header_is_refused_or_empty(text: str) -> None:
    error, counts, _ = parse(text, 0)
    assert (error, counts) in [(-errno.ENODEV, []), (0, [])]


def test_a_text_that_stops_anywhere_is_read_without_harm() -> None:
    for end in range(len(X86)):
        assert parse(X86[:end], 2)[0] in (0, -errno.ENODEV)


def test_different_lines_have_different_labels_and_different_counts_do_not() -> None:
    labels = parse(X86, 0)[2]
    assert parse(X86.replace("241187", "241188"), 0)[2] == labels
    assert parse(X86.replace(" 27:", " 28:"), 0)[2] != labels
    assert (
        parse(X86.replace("  8:          1          0         30   IO-APIC   8-edge      rtc0\n", ""), 0)[2] != labels
    )


def test_lines_are_named_by_device_or_description() -> None:
    assert line_names(X86) == (
        "8 (rtc0)",
        "27 (virtio1-virtqueues)",
        "NMI (Non-maskable interrupts)",
        "LOC (Local timer interrupts)",
        "ERR",
        "MIS",
    )
    assert line_names(ARM)[:2] == ("11 (arch_timer)", "IPI0 (Rescheduling interrupts)")


def test_verdicts_use_short_names() -> None:
    assert short_name("27 (virtio1-virtqueues)") == "IRQ 27"
    assert short_name("LOC (Local timer interrupts)") == "LOC"


def test_this_hosts_interrupts_are_read() -> None:
    text = Path("/proc/interrupts").read_text()
    cpu = int(re.findall(r"CPU(\d+)", text)[-1])
    error, counts, _ = parse(text, cpu, room=10_000)
    assert error == 0
    assert len(counts) == len(line_names(text)) == len(text.splitlines()) - 1
    assert sum(counts) > 0
