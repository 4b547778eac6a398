"""The chance of any false difference among many comparisons is the same as for one."""

from __future__ import annotations

import random

import pytest

from cbench.compare import stats as outcomes
from cbench.compare.family import decided, holm, needed, summary
from cbench.compare.stats import Comparison, compare_samples


def suite(draw: random.Random, benchmarks: int, processes: int, faster: int = 0) -> list[Comparison]:
    """Processes that differ; the first `faster` benchmarks are 10 % faster in B."""

    def side(scale: float) -> list[list[float]]:
        return [[scale * draw.lognormvariate(0, 0.02)] * 3 for _ in range(processes)]

    return [compare_samples(side(100), side(90 if at < faster else 100), "median", 0.05) for at in range(benchmarks)]


def test_holms_p_values_are_those_of_his_procedure() -> None:
    assert [p for (p,) in holm([[0.01], [0.04], [0.03], [0.005]])] == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


def test_thirty_benchmarks_that_do_not_differ_rarely_have_a_difference() -> None:
    draw = random.Random(2)
    found = [decided(suite(draw, 30, 8), 0.05) for _ in range(60)]
    alarms = sum(any(each.outcome in (outcomes.LOWER, outcomes.HIGHER) for each in one) for one in found)
    alone = sum(any(each.interval and not each.interval.low <= 1 <= each.interval.high for each in o) for o in found)
    assert alarms <= 8
    assert alone >= 30


def test_a_large_difference_stays_and_is_counted() -> None:
    found = decided(suite(random.Random(3), 30, 8, faster=2), 0.05)
    assert [each.outcome for each in found[:2]] == [outcomes.LOWER] * 2
    together = summary(found, 0.05)
    assert (together.comparisons, together.outcomes[outcomes.LOWER]) == (30, 2)


def test_with_too_few_processes_for_so_many_comparisons_nothing_is_decided() -> None:
    found = decided(suite(random.Random(3), 30, 4, faster=2), 0.05)
    assert {each.outcome for each in found[:2]} == {outcomes.TOO_FEW}
    assert (needed(0.05, 1), needed(0.05, 30)) == (4, 7)


def test_of_two_hypotheses_of_a_test_at_most_one_is_true_so_they_count_once() -> None:
    both = holm([[0.01, 0.5], [0.02, 0.04], [0.3]])
    assert [p for test in both for p in test] == pytest.approx([0.03, 0.6, 0.06, 0.12, 0.6])
    assert holm([[0.01, 0.02], [0.05]])[1] == pytest.approx([0.05])


def test_a_claim_of_the_same_is_corrected_for_the_number_of_comparisons() -> None:
    draw = random.Random(5)
    alone = compare_samples(*(side(draw, 7) for _ in range(2)), "median", 0.05, 0.03)
    assert alone.outcome == outcomes.SAME
    assert alone.p_same is not None
    many = decided([alone] * 30, 0.05, 0.03)
    assert many[0].p_same_holm == pytest.approx(30 * alone.p_same)
    assert (many[0].outcome == outcomes.SAME) == (30 * alone.p_same <= 0.05)


def side(draw: random.Random, processes: int) -> list[list[float]]:
    return [[100 * draw.lognormvariate(0, 0.01)] * 3 for _ in range(processes)]


@pytest.mark.slow
def test_tests_that_differ_by_the_threshold_are_rarely_called_the_same() -> None:
    draw = random.Random(7)
    alarms = 0
    for _ in range(60):
        tests = []
        for _ in range(20):
            a, b = side(draw, 8), [[value * 1.03 for value in values] for values in side(draw, 8)]
            tests.append(compare_samples(a, b, "median", 0.05, 0.03))
        alarms += any(each.outcome == outcomes.SAME for each in decided(tests, 0.05, 0.03))
    assert alarms <= 8
