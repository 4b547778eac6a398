"""Interruptions of some CPUs between two readings of /proc: wrapped counters, CPUs and interrupts that come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiet.errors import QuietError
from quiet.host.reader import Reader
from quiet.watch.interrupt_counts import InterruptCounts, called, growth
from tests.quiet.watch.snapshots import Rows, counts, interrupts, put, schedstat, softirqs, stat, tree

ISOLATED = frozenset({2, 3})


def between(folder: Path, before: dict[str, str], after: dict[str, str]) -> dict[tuple[int, str], int]:
    """Interruptions of the isolated CPUs, by CPU and cause."""
    looked = counts(root := tree(folder, **before))
    put(root, **after)
    return {(cpu, called(cause)): count for cpu, cause, count in looked.look(ISOLATED)}


def interrupted(folder: Path, before: Rows, after: Rows) -> dict[tuple[int, str], int]:
    return between(folder, {"interrupts": interrupts(before)}, {"interrupts": interrupts(after)})


def test_an_interrupt_is_named_with_its_cpu_and_how_often_it_came(tmp_path: Path) -> None:
    before, after = {"131": (9, 9, 9, 9), "LOC": (5, 5, 5, 5)}, {"131": (99, 9, 9, 13), "LOC": (8, 8, 5, 5)}
    assert interrupted(tmp_path, before, after) == {(3, "IRQ 131 nvme0q7"): 4}


def test_without_new_interrupts_nothing_is_counted(tmp_path: Path) -> None:
    looked = counts(tree(tmp_path))
    assert looked.look(ISOLATED) == []
    assert looked.look(ISOLATED) == []


def test_housekeeping_cpus_do_not_count(tmp_path: Path) -> None:
    assert interrupted(tmp_path, {"131": (0, 0, 0, 0)}, {"131": (7, 7, 0, 0)}) == {}


def test_each_check_counts_from_the_previous_one(tmp_path: Path) -> None:
    looked = counts(root := tree(tmp_path, interrupts=interrupts({"RES": (0, 0, 0, 0)})))
    for number in (1, 2, 3):
        put(root, interrupts=interrupts({"RES": (0, 0, number, 0)}))
        assert [item.times for item in looked.look(ISOLATED)] == [1]


@pytest.mark.parametrize(
    ("before", "now", "grew"),
    [
        (5, 5, 0),
        (5, 9, 4),
        (2**32 - 3, 2, 5),  # wrapped
        (2**32 - 1, 0, 1),
        (1000, 5, 5),  # the descriptor is new
    ],
)
def test_a_32_bit_counter_may_wrap_or_restart(before: int, now: int, grew: int) -> None:
    assert growth(before, now) == grew


def test_a_counter_that_wraps_between_two_checks_is_continued(tmp_path: Path) -> None:
    before, after = {"LOC": (0, 0, 4294967290, 0)}, {"LOC": (0, 0, 4, 0)}
    assert interrupted(tmp_path, before, after) == {(2, "local timer"): 10}


def test_a_new_interrupt_counts_from_zero_and_a_removed_one_is_forgotten(tmp_path: Path) -> None:
    looked = counts(root := tree(tmp_path, interrupts=interrupts({"24": (1, 1, 1, 1)})))
    put(root, interrupts=interrupts({"131": (0, 0, 0, 6)}))
    assert [(item.cpu, item.times) for item in looked.look(ISOLATED)] == [(3, 6)]
    put(root, interrupts=interrupts({"24": (0, 0, 3, 0), "131": (0, 0, 0, 6)}))
    assert [(item.cpu, item.times) for item in looked.look(ISOLATED)] == [(2, 3)]


def test_columns_move_when_a_cpu_goes_offline(tmp_path: Path) -> None:
    looked = counts(root := tree(tmp_path, interrupts=interrupts({"RES": (100, 200, 300, 400)})))
    put(root, interrupts=interrupts({"RES": (100, 300, 405)}, cpus=(0, 2, 3)))
    assert [(item.cpu, item.times) for item in looked.look(ISOLATED)] == [(3, 5)]


def test_old_counts_of_a_cpu_that_comes_back_are_not_reported(tmp_path: Path) -> None:
    looked = counts(root := tree(tmp_path, interrupts=interrupts({"RES": (100, 300, 405)}, cpus=(0, 1, 3))))
    put(root, interrupts=interrupts({"RES": (100, 300, 77, 405)}))
    assert looked.look(ISOLATED) == []
    put(root, interrupts=interrupts({"RES": (100, 300, 78, 405)}))
    assert [(item.cpu, item.times) for item in looked.look(ISOLATED)] == [(2, 1)]


def test_a_shootdown_is_not_counted_as_a_function_call_too(tmp_path: Path) -> None:
    before, after = {"CAL": (0, 0, 0, 0), "TLB": (0, 0, 0, 0)}, {"CAL": (0, 0, 5, 0), "TLB": (0, 0, 2, 0)}
    assert interrupted(tmp_path, before, after) == {(2, "IPI: TLB shootdown"): 2, (2, "IPI: function call"): 3}


def test_softirqs_task_switches_and_steal_time_are_counted(tmp_path: Path) -> None:
    before = {"softirqs": softirqs({"RCU": (1, 1, 1, 1)}), "schedstat": schedstat((5, 5, 5, 5)), "stat": stat((0,) * 4)}
    after = {
        "softirqs": softirqs({"RCU": (9, 9, 1, 4)}),
        "schedstat": schedstat((9, 9, 5, 8)),
        "stat": stat((7, 7, 2, 0)),
    }
    seen = {(3, "softirq RCU"): 3, (3, "task switch"): 3, (2, "host took the CPU (in ticks of 10 ms)"): 2}
    assert between(tmp_path, before, after) == seen


def test_decreasing_steal_time_is_ignored(tmp_path: Path) -> None:
    assert between(tmp_path, {"stat": stat((5,) * 4)}, {"stat": stat((4,) * 4)}) == {}


def test_on_arm64_the_timer_and_the_ipis_have_their_names(tmp_path: Path) -> None:
    purposes = {"11": "GICv3  27 Level     arch_timer", "IPI0": "Rescheduling interrupts"}
    texts = [interrupts({"11": (0, 0, n, 0), "IPI0": (0, 0, 0, n)}, purposes=purposes) for n in (0, 6)]
    seen = between(tmp_path, {"interrupts": texts[0]}, {"interrupts": texts[1]})
    assert seen == {(2, "local timer"): 6, (3, "IPI: reschedule"): 6}


def test_a_file_larger_than_the_buffer_is_read_whole(tmp_path: Path) -> None:
    rows = {str(number): [0] * 4 for number in range(2000)}
    after = rows | {"1999": [0, 0, 1, 0]}
    assert list(interrupted(tmp_path, rows, after).values()) == [1]


def test_counters_that_the_kernel_lacks_are_listed(tmp_path: Path) -> None:
    assert counts(tree(tmp_path)).missing == ["/proc/softirqs", "/proc/schedstat", "/proc/stat"]


def test_without_proc_interrupts_nothing_can_be_counted(tmp_path: Path) -> None:
    with pytest.raises(QuietError, match="interruptions cannot be counted: /proc/interrupts: No such file"):
        InterruptCounts(Reader(str(tmp_path)))


@pytest.mark.parametrize("text", ["", "\n", "CPU0 CPU1\nLOC: 1\nx", "garbage", "CPUx\n1: 2\n"])
def test_text_in_another_form_counts_nothing(tmp_path: Path, text: str) -> None:
    looked = counts(root := tree(tmp_path, interrupts=text))
    put(root, interrupts=text + " ")
    assert looked.look(ISOLATED) == []
