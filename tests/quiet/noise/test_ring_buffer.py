"""The kernel's trace pages: what a writer put in comes out. The layouts are those of include/linux/ring_buffer.h."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import formats
from tests.quiet.noise.tracing import PADDING, Item, page, word, written

MISSED, STORED = 1 << 31, 1 << 30
TOP = 0xF8 << 56


def told(stamp: int, items: list[Item]) -> list[tuple[int, bytes]]:
    """What the kernel's own reader would tell: each event's time and data."""
    found, base = [], stamp & TOP
    for item in items:
        if item.what == "stamp":
            stamp = base | item.time
        elif item.what != "discarded":
            stamp += item.time
        if item.what in ("data", "long"):
            found.append((stamp, item.data))
    return found


def read(raw: bytes) -> list[tuple[int, bytes]]:
    return [(stamp, raw[start : start + length]) for stamp, start, length in formats.records(raw)]


def words(low: int, high: int) -> st.SearchStrategy[bytes]:
    return st.integers(low, high).flatmap(lambda n: st.binary(min_size=4 * n, max_size=4 * n))


DELTA = st.integers(0, (1 << 27) - 1)
ITEMS = st.lists(
    st.one_of(
        st.builds(Item, st.just("data"), DELTA, words(1, 28)),
        st.builds(Item, st.just("long"), DELTA, words(1, 60)),
        st.builds(Item, st.just("discarded"), st.integers(1, (1 << 27) - 1), words(0, 10)),
        st.builds(Item, st.just("extend"), st.integers(0, (1 << 50) - 1)),
        st.builds(Item, st.just("stamp"), st.integers(0, (1 << 58) - 1)),
    ),
    max_size=15,
)
STAMP = st.one_of(st.integers(0, 1 << 50), st.integers(0, 3).map(lambda n: (n << 59) + 12345))


@given(STAMP, ITEMS, st.sampled_from([0, MISSED, STORED, MISSED | STORED]))
def test_every_event_comes_out_with_its_time_and_its_data(stamp: int, items: list[Item], flags: int) -> None:
    raw = page(stamp, items, flags)
    assert read(raw) == told(stamp, items)


@given(STAMP, ITEMS)
def test_nothing_comes_out_behind_the_padding_that_fills_a_page(stamp: int, items: list[Item]) -> None:
    rest = word(PADDING, 0) + struct.pack("=I", 4) + written(Item("data", 5, b"left from before"))
    assert read(page(stamp, items, rest=rest)) == told(stamp, items)


@pytest.mark.parametrize("flags", [0, MISSED])
def test_a_page_without_events_tells_none(flags: int) -> None:
    assert read(page(77, [], flags)) == []


def test_the_longest_short_event_and_the_shortest_long_one() -> None:
    items = [Item("data", 1, bytes(range(112))), Item("long", 1, bytes(range(116)))]
    assert [len(data) for _, data in read(page(0, items))] == [112, 116]


def test_what_was_discarded_does_not_move_the_time() -> None:
    items = [Item("data", 10, b"abcd"), Item("discarded", 99, b"efgh"), Item("data", 10, b"ijkl")]
    assert read(page(100, items)) == [(110, b"abcd"), (120, b"ijkl")]


def test_an_absolute_time_keeps_the_top_bits_of_the_pages_own() -> None:
    stamp = 3 << 59 | 1000
    items = [Item("stamp", 2000), Item("data", 5, b"abcd")]
    assert read(page(stamp, items)) == [(3 << 59 | 2005, b"abcd")]
