"""Plan the orders in which a study runs its tests; a run is one pass through all tests or, with subsets, some.

interleaved  Fixed, random, fixed, random, ...: D. Duplyakin et al., USENIX ATC 2023, Algorithm 1.
shuffled     One run of each pair is fixed and the other one random, and a coin flip decides which is first, so that no
             periodic disturbance coincides with one order.
random       Every run has a separate random order: A. Abedi, T. Brecht, "Conducting repeatable experiments in highly
             variable cloud computing environments", ICPE 2017 (randomized multiple interleaved trials, RMIT).
williams     Latin squares in which each test is equally often at each position and after each other test: E. J.
             Williams, "Experimental designs balanced for the estimation of residual effects of treatments", Aust. J.
             Sci. Res. A 2 (1949) 149-168. With n tests, n runs (n even) or 2n (n odd) are one square, whose rows are in
             random order.
subsets      Each run has a random selection of the tests, each with probability 1/2, in the fixed order: for suites
             whose harness imposes an order, so that the tests that run before a given test still vary.
"""

from __future__ import annotations

from dataclasses import dataclass

from cbench.stats.random_draws import Stream

FIXED, RANDOM = "fixed", "random"
INTERLEAVED, SHUFFLED, ALL_RANDOM, WILLIAMS = "interleaved", "shuffled", "random", "williams"
DESIGNS = (INTERLEAVED, SHUFFLED, ALL_RANDOM, WILLIAMS)
SUBSETS = "subsets"
OF_SUITES = (*DESIGNS, SUBSETS)
ISOLATED = "isolated"


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """The order of one run. `kind`: "fixed", "random", "williams", or "isolated" for a separate process per test, as a
    baseline for runs in one process. `order`: the numbers of the tests.
    """

    kind: str
    order: tuple[int, ...]


def seed_on(host: str, seed: int) -> int:
    """The seed of a study's orders on one host, so that every host draws its own orders; the seed itself if `host` is
    "".
    """
    return Stream(seed, f"host {host}").below(2**62) if host else seed


def plan(design: str, tests: int, repetitions: int, seed: int) -> list[PlannedRun]:
    """All runs in chronological order: 2 x `repetitions` if the design has a fixed order, otherwise `repetitions`.

    The same arguments give the same orders; more repetitions append runs. Raises ValueError for an unknown design,
    incomplete squares, or no tests or repetitions.
    """
    if tests < 1 or repetitions < 1:
        raise ValueError(f"{tests} tests, {repetitions} repetitions: at least one test and one repetition are needed")
    baseline = PlannedRun(FIXED, tuple(range(tests)))
    if design == WILLIAMS:
        return _squares(tests, repetitions, seed)
    if design == SUBSETS:
        return [PlannedRun(RANDOM, _subset(tests, number, seed)) for number in range(repetitions)]
    drawn = [PlannedRun(RANDOM, drawn_order(tests, number, seed)) for number in range(repetitions)]
    if design == ALL_RANDOM:
        return drawn
    if design not in (INTERLEAVED, SHUFFLED):
        raise ValueError(f"no such design: {design}")
    coin = Stream(seed, "first")
    runs = []
    for run in drawn:
        pair = [baseline, run]
        runs += pair if design == INTERLEAVED or coin.below(2) else pair[::-1]
    return runs


def with_isolated(runs: list[PlannedRun], seed: int) -> list[PlannedRun]:
    """The runs, each preceded or followed, at random, by the same run with isolated processes."""
    coin = Stream(seed, "isolated first")
    twice = []
    for run in runs:
        pair = [PlannedRun(ISOLATED, run.order), run]
        twice += pair if coin.below(2) else pair[::-1]
    return twice


def _subset(tests: int, number: int, seed: int) -> tuple[int, ...]:
    coin = Stream(seed, f"subset {number}")
    chosen = tuple(test for test in range(tests) if coin.below(2))
    return chosen or (coin.below(tests),)


def drawn_order(tests: int, number: int, seed: int) -> tuple[int, ...]:
    """The order of the random run with this number (from 0), independent of earlier draws."""
    return Stream(seed, f"order {number}").shuffled(range(tests))


def square(tests: int) -> list[tuple[int, ...]]:
    """The rows of a Williams design: `tests` rows, or twice as many for an odd number of tests above 1."""
    first = [0] * tests
    for place in range(1, tests):
        first[place] = (place + 1) // 2 if place % 2 else tests - place // 2
    rows = [tuple((start + shift) % tests for start in first) for shift in range(tests)]
    if tests % 2 and tests > 1:
        rows += [tuple(reversed(row)) for row in rows]
    return rows


def _squares(tests: int, repetitions: int, seed: int) -> list[PlannedRun]:
    rows = square(tests)
    if repetitions % len(rows):
        raise ValueError(
            f"{tests} tests need a multiple of {len(rows)} repetitions for Williams's design, not {repetitions}"
        )
    return [
        PlannedRun(WILLIAMS, row)
        for number in range(repetitions // len(rows))
        for row in drawn_square(tests, number, seed)
    ]


def drawn_square(tests: int, number: int, seed: int) -> list[tuple[int, ...]]:
    """The square with this number (from 0), with tests and rows in random order, independent of earlier draws."""
    names = Stream(seed, f"names {number}").shuffled(range(tests))
    return [tuple(names[place] for place in row) for row in Stream(seed, f"rows {number}").shuffled(square(tests))]
