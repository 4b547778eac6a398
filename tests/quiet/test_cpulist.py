"""The kernel's two notations of CPU sets, read and written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiet import cpulist
from quiet.errors import UsageError

SETS = st.frozensets(st.integers(0, 600), max_size=80)


@given(SETS)
def test_a_set_written_as_a_list_reads_back_as_itself(cpus: frozenset[int]) -> None:
    assert cpulist.parse(cpulist.format(cpus)) == cpus


@given(SETS)
def test_a_set_written_as_a_mask_reads_back_as_itself(cpus: frozenset[int]) -> None:
    text = cpulist.format_mask(cpus)
    assert cpulist.parse_mask(text) == cpus
    assert all(len(group) == 8 for group in text.split(",")[1:])
    assert 1 <= len(text.split(",")[0]) <= 8


@given(SETS)
def test_a_written_list_is_the_shortest(cpus: frozenset[int]) -> None:
    parts = [part for part in cpulist.format(cpus).split(",") if part]
    assert len(parts) == sum(cpu - 1 not in cpus for cpu in cpus)


@given(st.text(alphabet="0123456789-,:/ xa", max_size=12))
def test_any_text_is_a_list_of_cpus_or_an_error_that_quotes_it(text: str) -> None:
    try:
        said = cpulist.format(cpulist.parse(text))
    except UsageError as error:
        said = str(error)
    assert text.strip() in said or cpulist.parse(said) == cpulist.parse(text)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,8", {0, 1, 2, 3, 8}),
        ("8,0-1\n", {0, 1, 8}),
        ("1-3,2", {1, 2, 3}),
        ("0-10:2/4", {0, 1, 4, 5, 8, 9}),
        ("000000003", {3}),
        ("3-9:1/3", {3, 6, 9}),
        (" 1, 2 ", {1, 2}),
        ("", set()),
        ("(null)", set()),
    ],
)
def test_lists_are_read_as_the_kernel_reads_them(text: str, cpus: set[int]) -> None:
    assert cpulist.parse(text) == cpus


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "3-1",
        "0x3",
        "1,,2",
        "1,",
        "-1",
        "1-",
        "1-2-3",
        "0-3:2",
        "0-3:/2",
        "0-3:0/2",
        "0-3:3/2",
        "99999",
        "9" * 5000,
        "٣",
        "1.5",
    ],
)
def test_anything_but_a_list_of_cpus_is_refused_with_the_part_that_is_wrong(text: str) -> None:
    with pytest.raises(UsageError, match=r"is not a CPU list: .* write a list such as 2-3,8"):
        cpulist.parse(text)


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("f", {0, 1, 2, 3}),
        ("ff,00000001", {0, *range(32, 40)}),
        ("1,0", {32}),
        ("00000000,00000002\n", {1}),
        ("", set()),
    ],
)
def test_masks_are_read_in_groups_of_32_cpus(text: str, cpus: set[int]) -> None:
    assert cpulist.parse_mask(text) == cpus


@pytest.mark.parametrize("text", ["g", "1;2", "(null)", "1_0", "0x1", "-1", "1,,2"])
def test_anything_but_a_mask_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a CPU mask"):
        cpulist.parse_mask(text)


@pytest.mark.parametrize(("cpus", "mask"), [({0}, "1"), ({32}, "1,00000000"), (set(), "0"), (range(40), "ff,ffffffff")])
def test_masks_are_written_without_padding_in_front(cpus: set[int], mask: str) -> None:
    assert cpulist.format_mask(cpus) == mask
