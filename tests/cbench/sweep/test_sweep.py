"""`cbench sweep memory`: sizes, marks, every cell measured once, and the handling of impossible cells."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cbench.machine import tlb
from cbench.machine.memory import free_memory
from cbench.machine.tlb import HUGE, SMALL, Leaf, Tlb
from cbench.sweep import sizes as sweep_sizes
from cbench.sweep.measure import grid
from quiet.errors import UsageError
from quiet.host.reader import Reader
from tests.cbench.running import CBENCH, cbench, error_line
from tests.trees import plant

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("sweep")]  # one sweep serves many tests

SMALL_SWEEP = ("sweep", "memory", "--sizes", "4K,64K,1M", "--accesses", "1e3,5000", "--trials", "6")


# Sizes


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("4K", [4096]),
        ("1M,4k", [4096, 1 << 20]),
        ("1K-8K", [1024, 2048, 4096, 8192]),
        ("3K-13K", [3072, 6144, 12288]),
        ("1MiB,2MB,512B", [512, 1 << 20, 2 << 20]),
    ],
)
def test_sizes_are_read_as_they_are_written(text: str, wanted: list[int]) -> None:
    assert sweep_sizes.sizes(text) == tuple(wanted)


def test_the_default_sweep_goes_from_1_kib_to_2_gib_by_doubling() -> None:
    assert sweep_sizes.sizes(sweep_sizes.SIZES) == tuple(1 << power for power in range(10, 32))


@pytest.mark.parametrize("text", ["", "4X", "K", "0", "8K-4K", "4K,,8K", "-4K", "4K-", "\uff14K"])
def test_anything_but_a_size_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="--sizes"):
        sweep_sizes.sizes(text)


@given(st.text(max_size=12))
def test_any_text_is_sizes_or_one_clear_error(text: str) -> None:
    try:
        found = sweep_sizes.sizes(text)
    except UsageError:
        return
    assert found
    assert list(found) == sorted(set(found))


@pytest.mark.parametrize(("text", "wanted"), [("1e4", (10_000,)), ("5,1_000", (5, 1000)), ("1e6,1e4", (10_000, 10**6))])
def test_numbers_of_accesses_are_read_as_they_are_written(text: str, wanted: tuple[int, ...]) -> None:
    assert sweep_sizes.accesses(text) == wanted


@pytest.mark.parametrize("text", ["", "0", "-3", "1e", "x", "1.5e3"])
def test_anything_but_a_number_of_accesses_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--accesses"):
        sweep_sizes.accesses(text)


def test_sizes_beyond_free_memory_are_skipped_with_a_message() -> None:
    fit, line = sweep_sizes.fitting((1 << 20, 1 << 30, 2 << 30), 512 << 20)
    assert fit == (1 << 20,)
    assert line == "working sets left out: 1 GiB, 2 GiB: each is more than 80 % of the 512 MiB of free memory"
    assert sweep_sizes.fitting((1 << 20,), 512 << 20) == ((1 << 20,), "")
    with pytest.raises(UsageError, match=r"more than 80 % of the .* MiB of free memory"):
        sweep_sizes.fitting((1 << 30,), 1 << 20)


def test_memory_beyond_the_limits_of_control_groups_is_not_counted(tmp_path: Path) -> None:
    files = {
        "proc/self/cgroup": "0::/outer/inner",
        "sys/fs/cgroup/outer/inner/memory.max": "max",
        "sys/fs/cgroup/outer/inner/memory.current": "5",
        "sys/fs/cgroup/outer/memory.max": "3000000",
        "sys/fs/cgroup/outer/memory.current": "1000000",
    }
    assert free_memory(Reader(str(plant(tmp_path / "a", files)))) == 2_000_000
    root = {
        "proc/self/cgroup": "0::/",
        "sys/fs/cgroup/memory.max": "3000000",
        "sys/fs/cgroup/memory.current": "2500000",
        "sys/fs/cgroup/memory.stat": "anon 100\ninactive_file 1000000\nactive_file 500000\ninactive_anon 7\n",
    }
    assert free_memory(Reader(str(plant(tmp_path / "b", root)))) == 2_000_000  # the page cache is given up when needed


# TLBs


def answers(leaves: dict[tuple[int, int], Leaf]) -> tlb.Cpuid:
    return lambda leaf, subleaf: leaves.get((leaf, subleaf))


def vendor(name: str) -> Leaf:
    first, second, third = (int.from_bytes(name.encode()[at : at + 4], "little") for at in (0, 4, 8))
    return (0x1F, first, third, second)


def test_amd_tlbs_are_decoded() -> None:
    """The registers of a Zen 3: 64 entries in the first level, 2,048 in the second."""
    leaves = {
        (0, 0): vendor("AuthenticAMD"),
        (0x80000005, 0): (0xFF40FF40, 0xFF40FF40, 0, 0),
        (0x80000006, 0): (0x48002200, 0x68004200, 0, 0),
    }
    found = tlb.decode(answers(leaves))
    assert found.levels == (Tlb(1, SMALL, 64), Tlb(2, SMALL, 2048), Tlb(1, HUGE, 64), Tlb(2, HUGE, 2048))
    assert found.source == "from CPUID (AuthenticAMD)"


def test_intel_descriptors_are_decoded_and_al_is_not_one_of_them() -> None:
    """Leaf 2 of a Skylake; AL would be the descriptor of a TLB with 64 entries. ECX is not valid."""
    leaves = {(0, 0): vendor("GenuineIntel"), (2, 0): (0x76036303, 0x00F0B5FF, 0x800000BA, 0x00C30000)}
    assert tlb.decode(answers(leaves)).levels == (
        Tlb(1, SMALL, 64),
        Tlb(2, SMALL, 1536),
        Tlb(1, HUGE, 32),
        Tlb(2, HUGE, 1536),
    )


def test_intel_s_leaf_18_takes_precedence_over_its_descriptors() -> None:
    leaves: dict[tuple[int, int], Leaf] = {
        (0, 0): vendor("GenuineIntel"),
        (2, 0): (0x00FEFF01, 0, 0, 0),
        (0x18, 0): (3, 0, 0, 0),
        (0x18, 1): (0, 0x00040001, 16, 0x22),  # instructions: does not count
        (0x18, 2): (0, 0x00040003, 24, 0x21),  # data, first level: 96 entries of 4 KiB and 2 MiB
        (0x18, 3): (0, 0x00080003, 128, 0x43),  # unified, second level: 1,024
    }
    assert tlb.decode(answers(leaves)).levels == (
        Tlb(1, SMALL, 96),
        Tlb(2, SMALL, 1024),
        Tlb(1, HUGE, 96),
        Tlb(2, HUGE, 1024),
    )


def test_a_processor_without_tlb_sizes_is_reported() -> None:
    assert tlb.decode(answers({})).levels == ()
    assert "only x86" in tlb.decode(answers({})).source
    assert "does not report it" in tlb.decode(answers({(0, 0): vendor("CentaurHauls")})).source


def test_reading_this_processor_s_tlbs_leaves_the_affinity_as_it_was() -> None:
    import os

    before = os.sched_getaffinity(0)
    found = tlb.read(min(before))
    assert os.sched_getaffinity(0) == before
    assert bool(found.levels) == found.source.startswith("from CPUID")


# The command


@pytest.fixture(scope="module")
def swept() -> dict[str, Any]:
    done = cbench(*SMALL_SWEEP, "--json")
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def test_every_cell_is_measured_once_and_listed_in_order(swept: dict[str, Any]) -> None:
    wanted = [[size, n] for size in (4096, 65536, 1 << 20) for n in (1000, 5000)]
    assert [[cell["size"], cell["accesses"]] for cell in swept["cells"]] == wanted
    assert sorted(swept["order"]) == wanted
    assert all(len(cell["trials"]) == 6 for cell in swept["cells"])


def test_a_cell_s_figures_follow_from_its_trials(swept: dict[str, Any]) -> None:
    for cell in swept["cells"]:
        left_out = {each["trial"] for each in cell["polluted"] if each.get("left_out")}
        every = cell["trials"]
        values = [value for number, value in enumerate(every) if number not in left_out] or every
        low = cell["floor"] if cell["floor_repeats"] else min(values)
        if cell["calibration"] and cell["headline"]["value"] is not None:
            low = cell["headline"]["value"]
        assert cell["floor_per_access"] == low / cell["accesses"]
        assert cell["median_per_access"] * cell["accesses"] == pytest.approx(median(values))
        assert cell["range_pct"] == pytest.approx(100 * (max(values) - min(values)) / low)
        assert cell["polluted_pct"] == pytest.approx(100 * len({each["trial"] for each in cell["polluted"]}) / 6)


def test_the_random_order_is_the_seed_s(swept: dict[str, Any]) -> None:
    again, other = ([list(cell) for cell in grid((4096, 65536, 1 << 20), (1000, 5000), seed)] for seed in (1, 2))
    assert again == swept["order"]
    assert sorted(other) == sorted(again)
    assert other != again


def test_the_marks_are_this_host_s_caches_and_tlbs(swept: dict[str, Any]) -> None:
    sizes = [cache["size"] for cache in swept["caches"] if cache["size"]]
    reaches = [level["page"] * level["entries"] for level in swept["tlb"]["levels"]]
    assert [mark["size"] for mark in swept["marks"]] == sorted(sizes + reaches)


def test_the_table_names_every_size_and_the_marks_between(swept: dict[str, Any]) -> None:
    done = cbench(*SMALL_SWEEP)
    assert done.returncode == 0
    assert "cbench: 6 cells of 6 trials\n" in done.stderr
    assert all(size in done.stdout for size in ("4 KiB", "64 KiB", "1 MiB"))
    inside = [mark["name"] for mark in swept["marks"] if 4096 <= mark["size"] <= 1 << 20]
    assert all(name in done.stdout for name in inside)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sizes", "oops"], "--sizes 'oops'"),
        (["--accesses", "many"], "--accesses 'many'"),
        (["--trials", "0"], "--trials 0"),
        (["--cpu", "99999"], "CPU"),
        (["--cpu", "0-1"], "--cpu 0-1: give one CPU"),
        (["--workload", "hash"], "--workload hash: its rounds are not memory accesses; use memory"),
        (["--workload", "nonsense"], "unknown workload 'nonsense'"),
        (["--counter", "nonsense", "--sizes", "4K", "--accesses", "10"], "nonsense"),
        (["--sizes", "4K", "--accesses", "100,4e18", "--seed", "5"], "--param n=4"),
        (["-o", "plot.pdf"], "an .svg or .png file"),
        (["-o", "/nowhere/plot.svg"], "no directory /nowhere"),
    ],
)
def test_wrong_options_are_reported_in_one_line_before_anything_is_measured(arguments: list[str], words: str) -> None:
    if arguments == ["--cpu", "0-1"] and not Path("/sys/devices/system/cpu/cpu1").exists():
        arguments, words = ["--cpu", "x"], "x"
    done = cbench("sweep", "memory", *arguments)
    assert done.returncode == 2
    assert words in error_line(done)


def test_a_size_that_fails_is_kept_with_its_reason_and_the_others_are_measured() -> None:
    """No trial of so many accesses ends within the time that is allowed for one."""
    done = cbench(
        *("sweep", "memory", "--sizes", "4K", "--accesses", "100,4e10", "--trials", "3", "--timeout", "8", "--json")
    )
    if done.returncode == 2:  # timing two cells fails at once: one line
        assert "no trial ended within 8 s" in error_line(done)
        return
    cells = json.loads(done.stdout)["cells"]
    assert done.returncode == 1
    assert cells[0]["failed"] is None
    assert "no trial ended" in cells[1]["failed"]


def test_ctrl_c_keeps_nothing_and_says_so(tmp_path: Path) -> None:
    plot = tmp_path / "plot.svg"
    command = subprocess.Popen(
        [*CBENCH, "sweep", "memory", "--quick", "-o", str(plot), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stderr is not None
    assert "cells of 20 trials" in command.stderr.readline()
    time.sleep(0.5)
    command.send_signal(signal.SIGINT)
    try:
        out, err = command.communicate(timeout=120)
    finally:
        command.kill()
    assert command.returncode == 130
    assert out == ""
    assert "interrupted, nothing was kept" in err
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []
