"""How often `cbench order analyze` sees an order effect where none is, and where one is, in simulated studies.

    python tests/benchmarks/order_simulations.py [STUDIES]

The first table: the chance in % that any test of a family is called significant with no effect at all, by this tool and
by the chi-squared distribution as the paper has it, both after Bonferroni, in STUDIES (10,000) simulated studies each.
The second: the chance to see an effect in one of five tests, by the plain test of fixed against random order and by the
tests of position and predecessor within the random runs. All seeds are fixed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from cbench.order.stats.permutation import p_value
from cbench.stats.distributions import chi2_sf
from cbench.stats.kruskal import tied

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, tuple[int, ...]], Values]
ALPHA = 0.05
FAMILIES = (1, 3, 20)
SIZES = (5, 8, 10, 15, 20, 30, 50, 100)
SEED = 5
CHUNK = 4_000_000
"""So many values are drawn at a time."""

NOISE: dict[str, Draw] = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "long-tailed (lognormal)": lambda rng, shape: rng.lognormal(size=shape),
    "tied (normal, one digit)": lambda rng, shape: np.round(rng.normal(size=shape), 1),
    "discrete (5 levels)": lambda rng, shape: rng.choice(5, size=shape, p=(0.1, 0.2, 0.4, 0.2, 0.1)).astype(float),
    "discrete (2 levels)": lambda rng, shape: rng.integers(0, 2, size=shape).astype(float),
}


@dataclass(frozen=True)
class Ranked:
    """Average ranks of each row's values, and the rows' corrections for ties."""

    ranks: Values
    ties: Values


def ranked(rows: Values) -> Ranked:
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    n = rows.shape[1]
    places = np.arange(n)
    new = np.ones(rows.shape, dtype=bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    last = np.ones(rows.shape, dtype=bool)
    last[:, :-1] = new[:, 1:]
    first = np.maximum.accumulate(np.where(new, places, 0), axis=1)
    final = np.minimum.accumulate(np.where(last, places, n)[:, ::-1], axis=1)[:, ::-1]
    lengths = (final - first + 1).astype(float)
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, (first + final) / 2 + 1, axis=1)
    return Ranked(ranks, 1 - (lengths**2 - 1).sum(axis=1) / (float(n) ** 3 - n))


def kruskal(of: Ranked, labels: NDArray[np.intp], groups: int) -> Values:
    """H of each row; `labels`: the group of each value, of all rows or of each."""
    labels = np.broadcast_to(labels, of.ranks.shape)
    n = of.ranks.shape[1]
    away = np.zeros(of.ranks.shape[0])
    for group in range(groups):
        inside = labels == group
        size = inside.sum(axis=1)
        sums = np.where(inside, of.ranks, 0).sum(axis=1) - size * (n + 1) / 2
        away += np.divide(sums**2, size, out=np.zeros_like(sums), where=size > 0)
    with np.errstate(invalid="ignore"):
        return np.where(of.ties > 0, 12 * away / (n * (n + 1)) / of.ties, 0.0)


def chi2_p(h: Values, freedom: int = 1) -> Values:
    return np.fromiter((chi2_sf(each, freedom) for each in h.ravel().tolist()), float, h.size).reshape(h.shape)


def p_values(rows: Values, n: int, worth: Values) -> tuple[Values, Values]:
    """By the chi-squared distribution, and by permutation where the first is below `worth`."""
    h = kruskal(ranked(rows), np.repeat([0, 1], [n, rows.shape[1] - n]), 2)
    chi2 = chi2_p(h)
    ours = np.ones_like(chi2)
    for at in np.flatnonzero(chi2 < worth).tolist():
        ours[at] = p_value(float(h[at]), tied(np.sort(rows[at])), n, rows.shape[1] - n)
    return chi2, ours


def family_wise_error(draw: Draw, n: int, studies: int, families: tuple[int, ...], seed: int) -> Values:
    """The share of studies with a false alarm, a column for each family: this tool's and chi-squared's row."""
    rng = np.random.default_rng([seed, n])
    most = max(families)
    # a permutation's p is never so much smaller; only the smallest family in which a test is has a say of what matters
    worth = np.array([10 * ALPHA / next(size for size in families if size > column) for column in range(most)])
    alarms = np.zeros((2, len(families)))
    done = 0
    while done < studies:
        count = min(studies - done, max(1, CHUNK // (2 * n * most)))
        rows = draw(rng, (count * most, 2 * n))
        chi2, ours = p_values(rows, n, np.tile(worth, count))
        for place, p in enumerate((ours, chi2)):
            smallest = np.minimum.accumulate(p.reshape(count, most), axis=1)
            alarms[place] += [(smallest[:, size - 1] < ALPHA / size).sum() for size in families]
        done += count
    return np.asarray(100 * alarms / studies)


TESTS = 5
WATCHED = 2  # in the middle of the fixed order


@dataclass(frozen=True)
class Effect:
    """`of`: what is added to the watched test's values, in standard deviations of the noise, for each position,
    predecessor (-1: none) and order (True: random).
    """

    name: str
    of: Callable[[NDArray[np.intp], NDArray[np.intp], bool], Values]


EFFECTS = (
    Effect("shift: all values in random order", lambda place, before, random: np.full(place.shape, float(random))),
    Effect("position: first position", lambda place, before, random: (place == 0).astype(float)),
    Effect("position: linear from first to last", lambda place, before, random: place / (TESTS - 1)),
    Effect(
        "predecessor: the predecessor in the fixed order",
        lambda place, before, random: (before == WATCHED - 1).astype(float),
    ),
    Effect("predecessor: another test", lambda place, before, random: (before == WATCHED + 2).astype(float)),
)


def power(effect: Effect, size: float, n: int, studies: int, seed: int) -> tuple[float, float, float, float]:
    """How often in % the watched test is found by: OrderSage's plain test, ours, that of position, of predecessors.

    Bonferroni over TESTS, predecessors one by one over all TESTS^2 pairs.
    """
    rng = np.random.default_rng([seed, n])
    orders = rng.permuted(np.tile(np.arange(TESTS), (studies * n, 1)), axis=1)
    place = np.argmax(orders == WATCHED, axis=1)
    before = np.where(place > 0, orders[np.arange(orders.shape[0]), place - 1], -1)
    place, before = place.reshape(studies, n), before.reshape(studies, n)
    fixed_place, fixed_before = np.full((studies, n), WATCHED), np.full((studies, n), WATCHED - 1)
    fixed = rng.lognormal(size=(studies, n), sigma=0.5) + size * effect.of(fixed_place, fixed_before, False) * DEVIATION
    random = rng.lognormal(size=(studies, n), sigma=0.5) + size * effect.of(place, before, True) * DEVIATION
    limit = ALPHA / TESTS
    plain, ours = p_values(np.concatenate([fixed, random], axis=1), n, np.full(studies, 10 * limit))
    inside = ranked(random)
    position = chi2_p(kruskal(inside, place, TESTS), TESTS - 1)
    pairs = np.stack([chi2_p(kruskal(inside, (before == each).astype(np.intp), 2)) for each in range(-1, TESTS)])
    found = (plain < limit, ours < limit, position < limit, pairs.min(axis=0) < ALPHA / TESTS**2)
    return tuple(float(100 * each.mean()) for each in found)


DEVIATION = float(np.sqrt((np.exp(0.25) - 1) * np.exp(0.25)))
"""Of the noise: lognormal, sigma 0.5."""


def main() -> None:
    studies = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    error = 100 * np.sqrt(ALPHA * (1 - ALPHA) / studies)
    print(f"Family-wise error in %, {studies:,} studies without effect (standard error {error:.2f}); wanted: at most 5")
    print("in brackets: with the chi-squared distribution instead\n")
    print("| values | tests | " + " | ".join(f"n = {n}" for n in SIZES) + " |")
    print("| --- | ---: |" + " ---: |" * len(SIZES), flush=True)
    for number, (name, draw) in enumerate(NOISE.items()):
        columns = [family_wise_error(draw, n, studies, FAMILIES, SEED + number) for n in SIZES]
        for at, tests in enumerate(FAMILIES):
            cells = [f"{each[0, at]:.1f} ({each[1, at]:.1f})" for each in columns]
            print(f"| {name} | {tests} | " + " | ".join(cells) + " |", flush=True)
    print(f"\nChance in % to find an effect in one of {TESTS} tests, {studies // 5:,} studies; n runs of each order\n")
    print("| effect | size in sd | n | plain test (chi-squared) | plain test (permutation) | position | predecessor |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for effect in EFFECTS:
        for size in (0.5, 1.0, 2.0):
            for n in (20, 50, 100):
                found = power(effect, size, n, studies // 5, SEED)
                print(f"| {effect.name} | {size:g} | {n} | " + " | ".join(f"{each:.0f}" for each in found) + " |")


if __name__ == "__main__":
    main()
