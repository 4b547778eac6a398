"""The text of `cbench layout`."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cbench.ab.layouts import DrawnLayout
from cbench.layout.measure import MeasuredBuild, MeasuredLayouts
from cbench.layout.result import result
from cbench.layout.table import lines
from cbench.model import Trial
from tests.cbench.layout.test_options import FREE


def measured(*times: tuple[int, ...]) -> MeasuredLayouts:
    """Builds with these times in ns, block by block."""
    return MeasuredLayouts(
        tuple(
            MeasuredBuild(DrawnLayout(f"layout {number}"), f"{number}", tuple(Trial(value, 0) for value in row))
            for number, row in enumerate(times)
        ),
        1.0,
    )


def test_times_and_percentages_of_builds_are_of_the_same_numbers() -> None:
    # The medians of their own times are 19, 10.3 and 10.4 ms, but in most blocks the first build is the fastest.
    found = result(
        FREE,
        measured(
            (10_000_000, 10_000_000, 19_000_000, 20_000_000, 20_000_000),
            (10_300_000, 10_300_000, 10_300_000, 20_600_000, 20_600_000),
            (10_400_000, 10_400_000, 10_400_000, 20_800_000, 20_800_000),
        ),
    )
    fastest = found.times[0]
    for each in found.times:
        assert each.median_ns == pytest.approx(fastest.median_ns * (1 + each.slower_pct / 100))
    assert fastest.layout == "layout 0"


def test_a_preset_that_builds_nothing_counts_no_bytes() -> None:
    found = result(FREE, measured((1, 2, 3, 4, 5), (2, 3, 4, 5, 6), (3, 4, 5, 6, 7)))
    found = replace(found, preset="environment", distinct=1)
    assert lines(found)[1] == "  3 builds, preset environment, 5 blocks in 1 s"
