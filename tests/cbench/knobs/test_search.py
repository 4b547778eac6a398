"""The search on simulated hosts: the knobs that it names, those that it leaves, and dependencies between knobs."""

from __future__ import annotations

import random

import pytest

from cbench.knobs.design import NAMED, NONE, SEARCH, WRITTEN, Needs, ScreenedKnob, SearchOptions
from cbench.knobs.judge import LOUDER, QUIETER
from cbench.knobs.search import Search
from tests.cbench.knobs.simulated import SimulatedHost, knobs, one_each, screened

EVERY = knobs(48)
NAMES = [knob.name for knob in EVERY]


def eight(seed: int) -> list[str]:
    return random.Random(seed).sample(NAMES, 8)


@pytest.mark.slow
def test_eight_of_48_are_named_in_at_most_40_applications() -> None:
    right, false = 0, 0
    for seed in range(20):
        matter = eight(seed)
        host = SimulatedHost(one_each(matter), noise=0.02, seed=seed)
        search = screened(host, EVERY)
        assert host.applications <= 40
        right += set(matter) <= set(search.matter) and len(search.kept) <= 10
        false += len(set(search.matter) - set(matter)) > 1
    assert right >= 17
    assert false <= 1


def test_the_smallest_profile_is_compared_with_the_full_one_before_the_applications_end() -> None:
    host = SimulatedHost(one_each(eight(1)), noise=0.02)
    found = screened(host, EVERY).difference()
    assert found is not None
    assert found.low < 0.05 < 0.5 > found.high


def test_a_profile_that_does_nothing_is_left_out_whole() -> None:
    host = SimulatedHost([], noise=0.02)
    search = screened(host, EVERY)
    assert search.kept == []
    assert search.findings() == []
    assert search.next is None


def test_if_all_of_a_few_knobs_matter_all_are_kept() -> None:
    every = knobs(4)
    search = screened(SimulatedHost(one_each([knob.name for knob in every]), noise=0.01), every)
    assert search.kept == [knob.name for knob in every]
    assert search.difference() is None  # it is the full profile


def test_effects_are_those_that_were_planted_and_their_intervals_hold_them() -> None:
    sizes = {"k03": 10.0, "k17": 4.0, "k40": 2.0}
    host = SimulatedHost([(frozenset({name}), size) for name, size in sizes.items()], noise=0.02)
    findings = screened(host, EVERY).findings()
    assert [each.knob for each in findings] == list(sizes)
    for each in findings:
        assert each.effect == pytest.approx(sizes[each.knob], rel=0.1)
        assert each.low - 0.2 < sizes[each.knob] < each.high + 0.2
        assert each.p < 0.01


def test_a_small_cause_is_found_beside_a_large_one() -> None:
    host = SimulatedHost([(frozenset({"k07"}), 1000.0), (frozenset({"k31"}), 1.0)], noise=0.02)
    assert set(screened(host, EVERY).matter) == {"k07", "k31"}


def test_a_knob_that_makes_it_worse_is_named_and_left_out() -> None:
    host = SimulatedHost(one_each(["k05", "k20"], 3.0), worse={"k11": 2.0}, noise=0.02)
    search = screened(host, EVERY)
    assert {each.knob: each.sign for each in search.findings()} == {"k05": LOUDER, "k20": LOUDER, "k11": QUIETER}
    assert search.kept == ["k05", "k20"]
    found = search.difference()
    assert found is not None
    assert found.high < 0  # quieter than the full profile


def test_of_two_knobs_that_remove_the_same_cause_one_is_kept_and_called_replaceable() -> None:
    for seed in range(5):
        host = SimulatedHost([(frozenset({"k10", "k33"}), 4.0), *one_each(["k22"], 2.0)], noise=0.02, seed=seed)
        search = screened(host, EVERY)
        assert len(set(search.matter) & {"k10", "k33"}) == 1
        assert len(search.kept) == 2
        assert search.replaceable == sorted(set(search.matter) & {"k10", "k33"})


def test_effects_that_add_up_are_not_called_a_conflict() -> None:
    host = SimulatedHost(one_each(["k10", "k22"], 2.0), noise=0.02)
    search = screened(host, EVERY)
    assert search.together is not None
    assert search.replaceable == search.not_replaceable == []


def test_a_knob_that_another_one_needs_is_kept_with_it_and_never_left_out_before_it() -> None:
    every = knobs(20, {"k04": "k12", "k15": "k12"})
    needs = Needs(every)
    for seed in range(5):
        host = SimulatedHost(one_each(["k04"], 3.0), noise=0.02, seed=seed)
        search = Search(every, SearchOptions(seed=seed))
        while search.next is not None:
            assert search.next.left_out == needs.closed(search.next.left_out)
            search.add(host(search.next.left_out))
        assert search.needed == {"k12": "k04"}
        assert search.kept == ["k04", "k12"]


def test_the_longest_gap_is_screened_though_gaps_do_not_add_up() -> None:
    causes = [(frozenset({name}), size) for name, size in (("k01", 50.0), ("k09", 8.0), ("k30", 20.0))]
    host = SimulatedHost(causes, noise=0.03, largest=True)
    assert set(screened(host, EVERY).matter) == {"k01", "k09", "k30"}


def test_knobs_that_the_host_itself_names_are_tried_first_and_spare_applications() -> None:
    matter = eight(3)
    hinted, plain = (SimulatedHost(one_each(matter), noise=0.02) for _ in range(2))
    search = screened(hinted, EVERY, suspects=matter)
    others = screened(plain, EVERY)
    assert set(search.matter) == set(others.matter) == set(matter)
    assert hinted.applications < plain.applications


def test_a_wrong_suspect_is_not_named() -> None:
    host = SimulatedHost(one_each(["k08"], 2.0), noise=0.02)
    assert set(screened(host, EVERY, suspects=["k09", "k10"]).matter) == {"k08"}


def test_a_knob_named_because_of_a_burst_is_cleared_by_the_second_measurement() -> None:
    host = SimulatedHost(one_each(["k08"], 5.0), noise=0.02)
    search = Search(EVERY, SearchOptions())
    burst = False
    while search.next is not None:
        value = host(search.next.left_out)
        if not burst and "k08" not in search.next.left_out and search.next.left_out and search.next.phase == SEARCH:
            value, burst = value + 3.0, True
        search.add(value)
    assert burst
    assert set(search.matter) == {"k08"}


def test_a_search_without_applications_left_keeps_what_is_undecided_and_verifies() -> None:
    host = SimulatedHost(one_each(eight(5)), noise=0.02)
    search = screened(host, EVERY, most=20)
    assert host.applications == 20
    assert search.undecided
    assert set(search.undecided) <= set(search.kept)
    assert set(eight(5)) <= set(search.kept)
    assert len(search.pairs) == 1


def test_noise_that_hides_everything_names_nothing() -> None:
    named = 0
    for seed in range(20):
        host = SimulatedHost(one_each(["k08"], 0.05), noise=0.2, seed=seed)
        named += bool(screened(host, EVERY).findings())
    assert named <= 3


def test_the_same_values_give_the_same_applications() -> None:
    first, second = (screened(SimulatedHost(one_each(eight(7)), noise=0.05), EVERY) for _ in range(2))
    assert first.values == second.values
    assert first.pairs == second.pairs


def test_the_search_begins_with_both_ends_and_finishes_with_pairs_in_random_order() -> None:
    host = SimulatedHost(one_each(["k01"], 2.0), noise=0.02)
    search = Search((*EVERY, ScreenedKnob("k99")), SearchOptions())
    steps = []
    while search.next is not None:
        steps.append(search.next)
        search.add(host(search.next.left_out))
    assert steps[0].left_out == frozenset()
    assert (steps[1].why, steps[1].left_out) == (NONE, search.every)
    verified = [step.why for step in steps if step.phase == "verify"]
    assert verified.count(WRITTEN) * 2 == len(verified)
    assert [step.why for step in steps].count(NAMED) == 1
