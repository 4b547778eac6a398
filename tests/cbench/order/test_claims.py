"""All sentences of a verdict share one chance of a false alarm; effects that pass only by themselves are reported
separately.
"""

from __future__ import annotations

from math import nan

import numpy as np
import pytest

from cbench.order.claims import claimed
from cbench.order.stats.analysis import AnalysisRules, analyze
from cbench.order.summarize import summarize
from cbench.tables.columns import trials

NAMES = ("a", "b")


def test_the_first_family_has_three_quarters_of_alpha_and_the_others_share_the_rest() -> None:
    found = claimed({"orders": (NAMES, (0.03, 0.04)), "spread": (NAMES, (0.01, 0.02)), "drift": (NAMES, (1, 1))}, 0.05)
    assert [(each.family, each.named, each.alone) for each in found] == [
        ("orders", ("a",), ("b",)),
        ("spread", (), NAMES),
        ("drift", (), ()),
    ]
    assert sum(each.level for each in found) == pytest.approx(0.05)


def test_a_family_without_data_has_no_share() -> None:
    (found,) = claimed({"orders": (NAMES, (0.04, nan)), "spread": (NAMES, (nan, nan)), "predecessor": ((), ())}, 0.05)
    assert (found.level, found.named) == (0.05, ("a",))


def test_each_family_by_itself_has_all_of_alpha() -> None:
    found = claimed({"orders": (NAMES, (0.04, 1)), "spread": (NAMES, (0.04, 1))}, 0.05, shared=False)
    assert [(each.level, each.named) for each in found] == [(0.05, ("a",))] * 2


def test_an_order_that_only_adds_variance_is_found_by_its_spread_and_not_called_a_difference() -> None:
    draw = np.random.default_rng(4)
    columns = {
        "test": ["a"] * 60,
        "order": ["fixed", "random"] * 30,
        "value": [100 + draw.normal() * (1 + 3 * (run % 2)) for run in range(60)],
    }
    found, warnings = trials(columns)
    made = summarize(found, analyze(found, AnalysisRules()), warnings, 1.0)
    assert made.order_matters
    assert not made.tests["a"].significant
    assert made.tests["a"].spread_significant
    assert "no difference between the medians" in made.verdict[0]
    assert "but the order changes how much results vary: a (" in made.verdict[0]
    assert " times as large in random order)" in made.verdict[0]


def test_the_number_of_changed_comparisons_expected_by_chance_is_reported() -> None:
    """Twenty tests of nothing, 10 runs of each order: without this some of their 190 comparisons look like findings."""
    draw = np.random.default_rng(7)
    columns: dict[str, list[object]] = {name: [] for name in ("test", "order", "run", "value")}
    for run in range(20):
        for test in range(20):
            row = (f"t{test}", ("fixed", "random")[run % 2], run, 100 + 0.3 * test + draw.normal())
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    found, warnings = trials(columns)
    made = summarize(found, analyze(found, AnalysisRules()), warnings, 1.0)
    across = made.across
    assert across.pairs == 190
    assert across.expected is not None
    assert across.p is not None
    assert 0.2 * across.expected <= across.changed <= 3 * across.expected
    assert across.p > 0.05
    assert any(", not shown to be more than by chance: about " in line for line in made.verdict)
