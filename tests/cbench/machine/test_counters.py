"""Counters carry a value or a reason, never a synthetic number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cbench._cbench import lib
from cbench.machine import chains, counters, events
from cbench.machine.events import AMD, EVENTS, INTEL
from quiet.errors import UsageError
from quiet.host.reader import Reader

HERE = min(os.sched_getaffinity(0))


def device(root: Path, name: str, number: int, cpus: str) -> None:
    folder = root / "sys/bus/event_source/devices" / name
    folder.mkdir(parents=True)
    (folder / "type").write_text(f"{number}\n")
    (folder / "cpus").write_text(f"{cpus}\n")


def test_a_hybrid_cpu_is_counted_by_its_own_kind_of_core(tmp_path: Path) -> None:
    device(tmp_path, "cpu_core", 4, "0-3")
    device(tmp_path, "cpu_atom", 10, "4-7")
    cycles = EVENTS["cycles"]
    assert counters.attempts(cycles, 2, Reader(str(tmp_path))) == [(0, 4 << 32, 0), (0, 0, 0)]
    assert counters.attempts(EVENTS["instructions"], 5, Reader(str(tmp_path)))[0] == (0, 10 << 32 | 1, 0)


def test_on_an_arm_core_a_64_bit_user_count_is_requested_first(tmp_path: Path) -> None:
    device(tmp_path, "armv8_cortex_a53", 7, "0-3")
    device(tmp_path, "armv8_cortex_a72", 8, "4-5")
    tried = counters.attempts(EVENTS["cycles"], 4, Reader(str(tmp_path)))
    assert tried == [(8, 0x11, 3), (8, 0x11, 2), (8, 0x11, 0), (0, 0, 0)]


def vendor(root: Path, name: str) -> Reader:
    (root / "proc").mkdir()
    (root / "proc/cpuinfo").write_text(f"processor\t: 0\nvendor_id\t: {name}\n")
    return Reader(str(root))


def test_vendor_specific_events_are_requested_by_number(tmp_path: Path) -> None:
    assert counters.attempts(EVENTS["interrupts"], 0, vendor(tmp_path, AMD)) == [(4, 0x2C, 0)]


def test_a_raw_event_of_a_hybrid_cpu_goes_to_its_kind_of_core(tmp_path: Path) -> None:
    device(tmp_path, "cpu_core", 4, "0-3")
    device(tmp_path, "cpu_atom", 10, "4-7")
    assert counters.attempts(EVENTS["interrupts"], 5, vendor(tmp_path, INTEL)) == [(10, 0x01CB, 0)]


def test_where_no_vendor_has_the_event_nothing_is_tried(tmp_path: Path) -> None:
    assert counters.attempts(EVENTS["smis"], 0, vendor(tmp_path, INTEL)) == []


def test_an_arm_event_that_is_not_a_cycle_counter_may_be_read_as_32_bits(tmp_path: Path) -> None:
    device(tmp_path, "armv8_cortex_a72", 8, "0")
    tried = counters.attempts(EVENTS["branch-misses"], 0, Reader(str(tmp_path)))
    assert tried == [(8, 0x10, 3), (8, 0x10, 2), (8, 0x10, 0), (0, 5, 0)]


def test_software_events_are_counted_beside_the_clock() -> None:
    counter, handle = counters.open_counter(counters.ticks_name(), HERE)
    names = ("context-switches", "page-faults", "task-clock")
    try:
        found = counters.add_events(counter, handle, None, HERE)
        assert found.others == ()
        found = counters.add_events(counter, handle, names, HERE)
    finally:
        lib.cb_counter_destroy(handle)
    assert found.others == names
    assert found.left_out == {}


def test_a_requested_event_that_is_unavailable_is_refused_with_its_reason() -> None:
    lacking = [counter.name for counter in counters.survey(HERE) if not counter.available]
    counter, handle = counters.open_counter(counters.ticks_name(), HERE)
    try:
        for name in lacking:
            with pytest.raises(UsageError, match=f"--events {name}: unavailable together with {counter.name}: "):
                counters.add_events(counter, handle, (name,), HERE)
    finally:
        lib.cb_counter_destroy(handle)


def test_events_are_checked_by_name_before_anything_is_measured() -> None:
    assert lib.CB_MAX_OTHERS == events.MOST
    assert events.parse_events("auto") is None
    assert events.parse_events("none") == ()
    assert events.parse_events("branch-misses, page-faults") == ("branch-misses", "page-faults")
    for wrong in ("speed", "page-faults:u", "cycles:x"):
        with pytest.raises(UsageError, match=f"--events '{wrong}': unknown; use auto or none alone"):
            events.parse_events(wrong)
    with pytest.raises(UsageError, match="8 events; at most 7 fit"):
        events.parse_events(",".join([*list(EVENTS)[:8]]))


def test_devices_that_do_not_belong_to_cores_are_skipped(tmp_path: Path) -> None:
    device(tmp_path, "uncore_imc", 20, "0")
    (tmp_path / "sys/bus/event_source/devices/software").mkdir()
    assert counters.attempts(EVENTS["cycles"], 0, Reader(str(tmp_path))) == [(0, 0, 0)]


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


def test_the_automatic_choice_explains_the_counters_that_it_rejected() -> None:
    counter, handle = counters.choose("auto", HERE)
    lib.cb_counter_destroy(handle)
    if counter.name in (counters.CALIBRATED, counters.ticks_name()):
        assert "cycles and cycles:u unavailable" in counter.why
    else:
        assert counter.unit == "cycles"


def test_an_unknown_counter_is_refused_with_the_list() -> None:
    with pytest.raises(UsageError, match="use auto, cycles, cycles:u"):
        counters.choose("speed", HERE)


def test_an_unavailable_counter_is_refused_with_its_reason() -> None:
    lacking = [counter for counter in counters.survey(HERE) if not counter.available]
    lacking = [counter for counter in lacking if counter.name != counters.CALIBRATED]
    for counter in lacking:
        with pytest.raises(UsageError, match=f"counter {counter.name} is unavailable: "):
            counters.choose(counter.name, HERE)


def test_the_clock_advances() -> None:
    deltas = chains.ticks_deltas()
    assert len(deltas) == chains.DELTAS
    assert all(0 <= delta < 2**63 for delta in deltas)
    assert max(deltas) > 0
