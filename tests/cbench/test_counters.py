"""Counters carry a value or a reason, never a made-up number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cbench import counters
from cbench._cbench import lib
from quiet.errors import UsageError
from quiet.host import Reader

HERE = min(os.sched_getaffinity(0))


def device(root: Path, name: str, number: int, cpus: str) -> None:
    folder = root / "sys/bus/event_source/devices" / name
    folder.mkdir(parents=True)
    (folder / "type").write_text(f"{number}\n")
    (folder / "cpus").write_text(f"{cpus}\n")


def test_a_hybrid_cpu_is_counted_by_its_own_kind_of_core(tmp_path: Path) -> None:
    device(tmp_path, "cpu_core", 4, "0-3")
    device(tmp_path, "cpu_atom", 10, "4-7")
    cycles = counters.EVENTS["cycles"]
    assert counters.attempts(cycles, 2, Reader(str(tmp_path))) == [(0, 4 << 32, 0), (0, 0, 0)]
    assert counters.attempts(counters.EVENTS["instructions:u"], 5, Reader(str(tmp_path)))[0] == (0, 10 << 32 | 1, 0)


def test_an_arm_core_is_asked_for_a_64_bit_user_count_first(tmp_path: Path) -> None:
    device(tmp_path, "armv8_cortex_a53", 7, "0-3")
    device(tmp_path, "armv8_cortex_a72", 8, "4-5")
    tried = counters.attempts(counters.EVENTS["cycles:u"], 4, Reader(str(tmp_path)))
    assert tried == [(8, 0x11, 3), (8, 0x11, 0), (0, 0, 0)]


def test_devices_that_are_not_for_cores_are_passed_over(tmp_path: Path) -> None:
    device(tmp_path, "uncore_imc", 20, "0")
    (tmp_path / "sys/bus/event_source/devices/software").mkdir()
    assert counters.attempts(counters.EVENTS["cycles"], 0, Reader(str(tmp_path))) == [(0, 0, 0)]


def test_an_unavailable_counter_says_why_and_has_no_number() -> None:
    for counter in counters.survey(HERE):
        assert counter.why
        assert counter.overhead is None
        assert counter.available == bool(counter.method)


def test_the_clock_is_never_called_cycles() -> None:
    counter, handle = counters.open_counter(counters.ticks_name(), HERE)
    lib.cb_counter_destroy(handle)
    assert counter.available
    assert counter.unit.endswith(" ticks")


def test_the_automatic_choice_explains_what_it_passed_over() -> None:
    counter, handle = counters.choose("auto", HERE)
    lib.cb_counter_destroy(handle)
    if counter.name == counters.ticks_name():
        assert "cycles" in counter.why
        assert "unavailable" in counter.why
    else:
        assert counter.unit == "cycles"


def test_a_counter_that_is_none_is_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match="use auto, cycles, cycles:u"):
        counters.choose("speed", HERE)


def test_a_counter_that_cannot_be_had_is_refused_with_its_reason() -> None:
    lacking = [counter for counter in counters.survey(HERE) if not counter.available]
    for counter in lacking:
        with pytest.raises(UsageError, match=f"counter {counter.name} is unavailable: "):
            counters.choose(counter.name, HERE)


def test_the_clock_advances() -> None:
    deltas = counters.ticks_deltas()
    assert len(deltas) == counters.DELTAS
    assert all(0 <= delta < 2**63 for delta in deltas)
    assert max(deltas) > 0
