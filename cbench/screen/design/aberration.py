"""The best fraction of a given size: the highest resolution and, of these, the least aberration.

A. Fries, W. G. Hunter, "Minimum aberration 2^(k-p) designs", Technometrics 22 (1980) 601-608: of two designs the one is
better that has fewer of the shortest words in which they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from cbench.screen.design.fractional import Fraction, fraction

MOST_WORDS = 3_000_000
"""So many words are made at most while looking for the best generators: seconds."""


def best_fraction(names: Sequence[str], runs: int) -> Fraction:
    """The fraction of so many runs (a power of two) with the highest resolution and, of these, least aberration.

    The first factors are those without a generator. Raises ValueError where no fraction has so many runs, or too many
    would have to be tried.
    """
    k, m = len(names), runs.bit_length() - 1
    if runs < 2 or runs != 1 << m:
        raise ValueError(f"{runs} runs: a fraction has a power of two of them")
    if m > k:
        raise ValueError(f"{runs} runs are more than the {1 << k} treatments of {k} factors")
    if k > runs - 1 and k > m:
        raise ValueError(f"{k} factors need at least {1 << k.bit_length()} runs")
    chosen = _search(m, k - m)
    texts = [f"{names[m + place]}={'*'.join(names[each] for each in column)}" for place, column in enumerate(chosen)]
    return fraction(names, texts)


def _search(base: int, wanted: int) -> list[tuple[int, ...]]:
    """For each factor with a generator the factors without one of which it is the product."""
    columns = [each for size in range(base, 1, -1) for each in combinations(range(base), size)]
    masks = [sum(1 << each for each in column) for column in columns]
    best: tuple[tuple[int, ...], list[int]] | None = None
    made = 0

    def deeper(chosen: list[int], words: list[int], pattern: tuple[int, ...]) -> None:
        nonlocal best, made
        if best is not None and pattern >= best[0]:  # another generator only adds words
            return
        if len(chosen) == wanted:
            best = pattern, chosen
            return
        for at in range(chosen[-1] + 1 if chosen else 0, len(columns) - (wanted - len(chosen)) + 1):
            made += len(words) + 1
            if made > MOST_WORDS:
                raise ValueError(f"{base + wanted} factors in {1 << base} runs are too many to choose; give generators")
            new = masks[at] | 1 << (base + len(chosen))
            more = [new, *(word ^ new for word in words)]
            counts = list(pattern)
            for word in more:
                counts[word.bit_count()] += 1
            deeper([*chosen, at], words + more, tuple(counts))

    deeper([], [], (0,) * (base + wanted + 1))
    assert best is not None
    return [columns[at] for at in best[1]]
