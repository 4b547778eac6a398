"""The kernel's format files, the bytes that they describe, and the trace's pages: what a writer put in comes out."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet.noise import formats
from quiet.noise.formats import Decoder
from tests.quiet.noise.tracing import PADDING, Item, page, word, written

COMMON = """\
\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;
\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;
\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;
\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;

"""
SWITCH = f"""\
name: sched_switch
ID: 316
format:
{COMMON}\
\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;
\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;
\tfield:int prev_prio;\toffset:28;\tsize:4;\tsigned:1;
\tfield:long prev_state;\toffset:32;\tsize:8;\tsigned:1;
\tfield:char next_comm[16];\toffset:40;\tsize:16;\tsigned:0;
\tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;
\tfield:int next_prio;\toffset:60;\tsize:4;\tsigned:1;

print fmt: "prev_comm=%s prev_pid=%d ==> next_comm=%s", REC->prev_comm, REC->prev_pid, REC->next_comm
"""
HANDLER = f"""\
name: irq_handler_entry
ID: 160
format:
{COMMON}\
\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;
\tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;

print fmt: "irq=%d name=%s", REC->irq, __get_str(name)
"""
CPUMASK = f"""\
name: ipi_send_cpumask
ID: 501
format:
{COMMON}\
\tfield:__data_loc cpumask_t cpumask;\toffset:8;\tsize:4;\tsigned:0;
\tfield:void * callsite;\toffset:16;\tsize:8;\tsigned:0;
\tfield:void * callback;\toffset:24;\tsize:8;\tsigned:0;

print fmt: "cpumask=%s", __get_cpumask(cpumask)
"""


def test_a_format_file_gives_the_number_and_each_field() -> None:
    layout = formats.parse(SWITCH)
    assert layout.number == 316
    assert list(layout.fields)[-3:] == ["next_comm", "next_pid", "next_prio"]
    assert layout.fields["next_comm"] == formats.Field("next_comm", 40, 16, False, False, True, True)
    assert layout.fields["prev_state"] == formats.Field("prev_state", 32, 8, True, False, False, False)


@pytest.mark.parametrize("text", ["", "no such thing", "name: x\nformat:\n"])
def test_anything_but_a_format_file_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match="ID"):
        formats.parse(text)


def test_text_in_place_ends_where_its_zero_is() -> None:
    raw = bytearray(64)
    struct.pack_into("=H2xi", raw, 0, 316, 77)
    raw[40:56] = b"kworker/1:2\0left"
    struct.pack_into("=i", raw, 56, 4711)
    page = b"before" + bytes(raw)
    taken = Decoder(formats.parse(SWITCH), ("common_pid", "next_pid", "next_comm")).take(page, 6)
    assert taken == (77, 4711, "kworker/1:2")


def test_text_elsewhere_is_found_by_its_offset_and_length() -> None:
    name = b"virtio0-input.0\0"
    raw = struct.pack("=H2xiiI", 160, 5, 27, len(name) << 16 | 16) + name
    taken = Decoder(formats.parse(HANDLER), ("common_pid", "irq", "name")).take(b"\xff" * 9 + raw, 9)
    assert taken == (5, 27, "virtio0-input.0")


def test_a_mask_elsewhere_is_its_bytes() -> None:
    mask = (1 << 9 | 1).to_bytes(8, "little")
    raw = struct.pack("=H2xiI4xQQ", 501, 5, 8 << 16 | 32, 1, 2) + mask
    assert Decoder(formats.parse(CPUMASK), ("common_pid", "cpumask")).take(raw, 0) == (5, mask)


def test_a_field_that_this_kernel_does_not_have_is_none() -> None:
    raw = struct.pack("=H2xiiI", 160, 5, 27, 0)
    assert Decoder(formats.parse(HANDLER), ("common_pid", "bogus", "irq")).take(raw, 0) == (5, None, 27)


def test_text_that_is_not_utf_8_is_still_text() -> None:
    raw = struct.pack("=H2xiiI", 160, 5, 27, 2 << 16 | 16) + b"\xff\0"
    assert Decoder(formats.parse(HANDLER), ("name",)).take(raw, 0) == ("\N{REPLACEMENT CHARACTER}",)


CODES = {(1, True): "b", (2, True): "h", (4, True): "i", (8, True): "q"}
FIELDS = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.booleans(), st.integers(0, 7)), min_size=1, max_size=8)


@pytest.mark.slow
@given(FIELDS, st.data())
def test_numbers_are_unpacked_in_any_order(fields: list[tuple[int, bool, int]], data: st.DataObject) -> None:
    lines, raw, wanted, at = ["ID: 9"], b"", {}, 0
    for number, (size, signed, hole) in enumerate(fields):
        low, high = (-(1 << (8 * size - 1)), (1 << (8 * size - 1)) - 1) if signed else (0, (1 << 8 * size) - 1)
        value = data.draw(st.integers(low, high))
        code = CODES[size, True]
        raw += b"\xee" * hole + struct.pack("=" + (code if signed else code.upper()), value)
        at += hole
        lines.append(f"\tfield:some type f{number};\toffset:{at};\tsize:{size};\tsigned:{int(signed)};")
        wanted[f"f{number}"] = value
        at += size
    names = data.draw(st.permutations(list(wanted)))
    some = names[: data.draw(st.integers(1, len(names)))]
    decoder = Decoder(formats.parse("\n".join(lines)), some)
    assert decoder.take(b"\xdd" * 3 + raw, 3) == tuple(wanted[name] for name in some)


MISSED, STORED = 1 << 31, 1 << 30
TOP = 0xF8 << 56


def expected(stamp: int, items: list[Item]) -> list[tuple[int, bytes]]:
    """The output of the kernel's own reader: each event's time and data."""
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
    assert read(raw) == expected(stamp, items)


@given(STAMP, ITEMS)
def test_nothing_is_read_after_the_padding_that_fills_a_page(stamp: int, items: list[Item]) -> None:
    rest = word(PADDING, 0) + struct.pack("=I", 4) + written(Item("data", 5, b"left from before"))
    assert read(page(stamp, items, rest=rest)) == expected(stamp, items)


@pytest.mark.parametrize("flags", [0, MISSED])
def test_a_page_without_events_yields_none(flags: int) -> None:
    assert read(page(77, [], flags)) == []


def test_the_longest_short_event_and_the_shortest_long_one_are_read() -> None:
    items = [Item("data", 1, bytes(range(112))), Item("long", 1, bytes(range(116)))]
    assert [len(data) for _, data in read(page(0, items))] == [112, 116]


def test_discarded_events_do_not_change_the_time() -> None:
    items = [Item("data", 10, b"abcd"), Item("discarded", 99, b"efgh"), Item("data", 10, b"ijkl")]
    assert read(page(100, items)) == [(110, b"abcd"), (120, b"ijkl")]


def test_an_absolute_time_keeps_the_top_bits_of_the_pages_own() -> None:
    stamp = 3 << 59 | 1000
    items = [Item("stamp", 2000), Item("data", 5, b"abcd")]
    assert read(page(stamp, items)) == [(3 << 59 | 2005, b"abcd")]
