"""The detector's C compiles without a warning, and does nothing that a sanitizer objects to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import detector
from quiet.noise._noise import ffi, lib
from tests import CHECKOUT
from tests.c_code import EVERY_COMPILER, compile_strictly, run_sanitized

ROOT = CHECKOUT / "quiet" / "noise" / "c"
SOURCES = sorted(ROOT.glob("*.c"))
VALUE = st.one_of(st.integers(0, 300), st.integers(0, (1 << 64) - 1), st.integers(0, 63).map(lambda power: 1 << power))


@pytest.mark.slow
@EVERY_COMPILER
def test_every_compiler_at_hand_accepts_the_c_without_a_warning(compiler: str) -> None:
    compile_strictly(compiler, ROOT, SOURCES)


@pytest.mark.slow
def test_the_sanitizers_find_nothing(tmp_path: Path) -> None:
    run_sanitized(Path(__file__).with_name("sanitize.c"), ROOT, SOURCES, tmp_path)


def test_the_loop_holds_nothing_but_the_clock_and_the_comparison() -> None:
    text = (ROOT / "detector.c").read_text()
    start = text.index("static void watch_loop(")
    loop = text[start : text.index("\n}\n", start)]
    assert "now()" in loop
    for forbidden in ("malloc", "printf", "getrusage", "clock_gettime", "memset", "exit", "histogram"):
        assert forbidden not in loop


def test_the_loop_of_wake_ups_holds_nothing_but_two_clocks_the_sleep_and_the_counts() -> None:
    text = (ROOT / "wake.c").read_text()
    start = text.index("static void wake_loop(")
    loop = text[start : text.index("\n}\n", start)]
    calls = set(re.findall(r"\b([a-z_]+)\(", loop.partition("{")[2])) - {"while", "if", "for"}
    assert calls == {"monotonic", "qn_now", "timespec_of", "clock_nanosleep", "qn_wake_note"}


@given(st.lists(st.integers(1, 20_000_000), min_size=1, max_size=60))
def test_a_wake_up_enters_its_bin_and_the_worst_ones_are_kept(latencies: list[int]) -> None:
    made = ffi.new("qn_wake *")
    made.least = (1 << 64) - 1
    for number, latency in enumerate(latencies):
        lib.qn_wake_note(made, number, latency)
    late = [each for each in latencies if each >= 10_000_000]
    assert made.beyond == len(late)
    assert all(made.bins[each // 100] for each in latencies if each < 10_000_000)
    assert (made.wakes, made.sum, made.least, made.most) == (
        *(len(latencies), sum(latencies), min(latencies), max(latencies)),
    )
    kept = sorted((each.latency for each in made.worst if each.latency), reverse=True)
    assert kept == sorted(latencies, reverse=True)[: lib.QN_WAKE_WORST]
    assert all(latencies[each.number] == each.latency for each in made.worst if each.latency)


@given(VALUE)
def test_every_value_lies_in_its_bucket(value: int) -> None:
    index = lib.qn_bucket(value)
    assert 0 <= index < lib.QN_BUCKETS
    assert lib.qn_bucket_floor(index) <= value
    if index + 1 < lib.QN_BUCKETS:
        assert value < lib.qn_bucket_floor(index + 1)


@given(VALUE)
def test_a_bucket_is_within_a_sixteenth_of_its_values(value: int) -> None:
    low = lib.qn_bucket_floor(lib.qn_bucket(value))
    assert 0 <= (value - low) * 16 <= value


def test_buckets_rise_one_by_one_and_each_begins_with_its_floor() -> None:
    floors = [lib.qn_bucket_floor(index) for index in range(lib.QN_BUCKETS)]
    assert floors == sorted(set(floors))
    assert [lib.qn_bucket(low) for low in floors] == list(range(lib.QN_BUCKETS))


def test_a_gap_has_the_size_that_python_assumes() -> None:
    assert ffi.sizeof("qn_gap") == detector.GAP_BYTES


@pytest.mark.parametrize("capacity", [0, (1 << 32) + 1, (1 << 64) - 1])
def test_a_ring_of_no_size_is_refused(capacity: int) -> None:
    made = ffi.new("qn_watch **")
    assert lib.qn_watch_create(capacity, made) < 0
    assert made[0] == ffi.NULL
