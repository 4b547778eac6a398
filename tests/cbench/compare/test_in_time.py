"""Sides that were measured one after the other are named."""

from __future__ import annotations

import pytest

from cbench.compare.single import one_after_the_other

CASES = [
    ([1, 2, 3, 4], [5, 6, 7, 8], "A"),
    ([5, 6, 7, 8], [1, 2, 3, 4], "B"),
    ([1, 3, 5, 7], [2, 4, 6, 8], None),
    ([1], [2], None),
    ([1, 2], [3], "A"),
    ([], [1, 2], None),
    ([1, 2, 3], [1, 2, 3], None),
]


@pytest.mark.parametrize(("a", "b", "first"), CASES)
def test_the_first_side_is_known_if_they_were_not_interleaved(a: list[int], b: list[int], first: str | None) -> None:
    assert one_after_the_other(a, b) == first
