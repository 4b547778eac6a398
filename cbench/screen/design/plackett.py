"""Construct Plackett-Burman designs: main effects of up to N - 1 two-level factors in N runs, N a multiple of 4.

R. L. Plackett, J. P. Burman, "The design of optimum multifactorial experiments", Biometrika 33 (1946) 305-325. R. E. A.
C. Paley, "On orthogonal matrices", J. Math. Phys. 12 (1933) 311-320: two constructions from the squares modulo a prime,
together with doubling (J. J. Sylvester 1867), yield every multiple of 4 up to 48. For 8, 12, 20 and 24 runs, the rows
are those that Plackett and Burman printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

from cbench.screen.design.factorial import Treatment, effect_name

LARGEST = 48
"""The maximum number of runs."""
LISTED = 6
"""The maximum number of interactions aliased with one main effect that are named individually."""

Signs = list[list[int]]


@dataclass(frozen=True, slots=True)
class PlackettBurman:
    names: tuple[str, ...]
    treatments: tuple[Treatment, ...]

    def aliases(self) -> tuple[tuple[int, int, int, Fraction], ...]:
        """The aliases as tuples (main effect, first, second, share), with factors by number. The estimate of the main
        effect contains this signed share of the interaction of the two other factors.
        """
        columns = [[2 * treatment[each] - 1 for treatment in self.treatments] for each in range(len(self.names))]
        shares = []
        for main, column in enumerate(columns):
            for one, two in combinations([each for each in range(len(columns)) if each != main], 2):
                total = sum(a * b * c for a, b, c in zip(column, columns[one], columns[two], strict=True))
                if total:
                    shares.append((main, one, two, Fraction(total, len(column))))
        return tuple(shares)

    def words(self) -> tuple[str, ...]:
        """Sentences that describe the design: its size, and the interactions that bias each main effect's estimate."""
        k, runs = len(self.names), len(self.treatments)
        first = f"{runs} treatments for {k} two-level factors (Plackett-Burman, {runs} runs)"
        shares = self.aliases()
        if not shares:
            return (first, "main effects are clear of two-factor interactions")
        return (first, *(self._sentence(main, shares) for main in range(k)))

    def _sentence(self, main: int, shares: Sequence[tuple[int, int, int, Fraction]]) -> str:
        ours = [(share, (one, two)) for each, one, two, share in shares if each == main]
        if not ours:
            return f"{self.names[main]}: clear of two-factor interactions"
        if len(ours) <= LISTED:
            parts = [f"{_share(share)} {effect_name(self.names, pair)}" for share, pair in ours]
            return f"{self.names[main]}: its estimate includes {', '.join(parts)}"
        counts = Counter(abs(share) for share, _ in ours)
        parts = [f"{'' if size == 1 else f'{size} of '}{count}" for size, count in sorted(counts.items(), reverse=True)]
        text = f"its estimate includes, added or subtracted, {' and '.join(parts)} interactions of other factors"
        return f"{self.names[main]}: {text}"


def plackett_burman(names: Sequence[str], runs: int | None = None) -> PlackettBurman:
    """The Plackett-Burman design for these factors. `runs`: None for the smallest multiple of 4 above the number of
    factors. Raises ValueError if the number of runs is not a multiple of 4 from 4 to LARGEST, or is too small.
    """
    k = len(names)
    wanted = runs if runs is not None else max(4, 4 * (k // 4 + 1))
    if wanted < 4 or wanted % 4 or wanted > LARGEST:
        raise ValueError(f"{wanted} runs: the number of runs must be a multiple of 4, up to {LARGEST}")
    if k > wanted - 1:
        raise ValueError(f"{k} factors are too many for {wanted} runs: {wanted - 1} at most")
    return PlackettBurman(tuple(names), tuple(tuple(int(sign > 0) for sign in row[:k]) for row in signs(wanted)))


def signs(runs: int) -> Signs:
    """The design matrix: `runs` rows of `runs` - 1 signs, whose columns are balanced and orthogonal. `runs`: a multiple
    of 4, up to LARGEST.
    """
    if _prime(runs - 1):
        prime = runs - 1
        squares = _squares(prime)
        first = [1 if place == 0 or place in squares else -1 for place in range(prime)]
        return [first[-shift:] + first[:-shift] for shift in range(prime)] + [[-1] * prime]
    rows = _doubled_conference(runs // 2 - 1) if _prime(runs // 2 - 1) and runs % 8 == 4 else _doubled(runs // 2)
    return [[sign * row[0] for sign in row[1:]] for row in rows]


def _doubled(half: int) -> Signs:
    rows = [[1, *row] for row in signs(half)]
    return [row + row for row in rows] + [row + [-sign for sign in row] for row in rows]


def _doubled_conference(prime: int) -> Signs:
    """A Hadamard matrix of 2 (prime + 1) rows, from a symmetric conference matrix. `prime`: congruent to 1 modulo 4."""
    squares = _squares(prime)
    size = prime + 1
    matrix = [[0] * size for _ in range(size)]
    for one in range(size):
        for two in range(size):
            if one != two:
                away = (one - two) % prime
                matrix[one][two] = 1 if 0 in (one, two) or away in squares else -1
    blocks = {0: ((1, -1), (-1, -1)), 1: ((1, 1), (1, -1)), -1: ((-1, -1), (-1, 1))}
    return [[each for sign in row for each in blocks[sign][half]] for row in matrix for half in (0, 1)]


def _squares(prime: int) -> set[int]:
    return {each * each % prime for each in range(1, prime)}


def _prime(number: int) -> bool:
    return number > 1 and all(number % each for each in range(2, int(number**0.5) + 1))


def _share(share: Fraction) -> str:
    return "+" if share == 1 else "-" if share == -1 else f"{'+' if share > 0 else ''}{share} of"
