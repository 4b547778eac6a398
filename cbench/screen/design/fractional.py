"""Construct two-level fractional factorial designs: generators, defining relation, resolution, aliases.

G. E. P. Box, J. S. Hunter, "The 2^(k-p) fractional factorial designs, part I", Technometrics 3 (1961) 311-351. The best
fraction of a given size has the least aberration of all fractions with the highest resolution: A. Fries, W. G. Hunter,
"Minimum aberration 2^(k-p) designs", Technometrics 22 (1980) 601-608. Of two designs, the one with less aberration has
fewer words of the shortest length at which the numbers of words differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from cbench.screen.design.factorial import MOST, TIMES, Treatment, effect_name

ROMAN = ("0", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV", "XV", "XVI")
MEANING = {
    3: "some main effects cannot be separated from two-factor interactions",
    4: "main effects are clear of two-factor interactions, but some of these are aliased with each other",
    5: "main effects and two-factor interactions are clear of each other",
}
"""The meaning of each resolution."""
LETTERS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
"""The letters of the factors in generators such as D=ABC; I is the identity."""


@dataclass(frozen=True, slots=True)
class Word:
    """A product of factors (by number, ascending) that has the same value, `sign`, in all runs: +1 or -1."""

    factors: tuple[int, ...]
    sign: int = 1


@dataclass(frozen=True, slots=True)
class Fraction:
    """A 2^(k-p) design. `generators`: written with the factors' names; `defining`: all words of the defining relation,
    shortest first; `resolution`: the length of the shortest word, None for a full factorial.
    """

    names: tuple[str, ...]
    treatments: tuple[Treatment, ...]
    generators: tuple[str, ...]
    defining: tuple[Word, ...]
    resolution: int | None

    def aliases(self) -> tuple[tuple[tuple[int, ...], tuple[Word, ...]], ...]:
        """The sets of aliased effects of one or two factors, each as one effect and its aliases with their signs. Each
        set appears once; effects without such aliases are omitted.
        """
        aliases, seen = [], set[tuple[int, ...]]()
        every = range(len(self.names))
        for effect in (each for size in (1, 2) for each in combinations(every, size)):
            if effect in seen:
                continue
            others = sorted((_times(effect, word) for word in self.defining), key=_length)
            near = tuple(word for word in others if 0 < len(word.factors) <= 2)
            seen |= {word.factors for word in near}
            if near:
                aliases.append((effect, near))
        return tuple(aliases)

    def words(self) -> tuple[str, ...]:
        """Sentences that describe the design: size, defining relation, resolution with its meaning, aliases."""
        k, p = len(self.names), len(self.generators)
        runs = len(self.treatments)
        if self.resolution is None:
            return (f"all {runs} treatments of {k} two-level factors: every effect is separate from every other",)
        relation = " = ".join(_signed(self.names, word) for word in self.defining)
        lines = [
            f"{runs} of {2**k} treatments (2^({k}-{p})), resolution "
            f"{ROMAN[self.resolution]}: {MEANING[min(self.resolution, 5)]}",
            f"generators: {', '.join(self.generators)}; defining relation: I = {relation}",
        ]
        for effect, others in self.aliases():
            sums = "".join(
                f" {'+' if word.sign > 0 else '-'} {effect_name(self.names, word.factors)}" for word in others
            )
            lines.append(f"only this sum can be estimated: {effect_name(self.names, effect)}{sums}")
        return tuple(lines)


def fraction(names: Sequence[str], generators: Sequence[str]) -> Fraction:
    """The fraction with these generators, such as "D=ABC" (factors by letter, beginning with A) or "lto = opt*aslr"; a
    minus sign before the right side selects the other half. Without generators, this is the full factorial.

    Raises ValueError, with the reason in one line, for an invalid generator or more than MOST treatments.
    """
    names = tuple(names)
    generated: dict[int, tuple[Word, str]] = {}
    for text in generators:
        left, right = _generator(names, text)
        if left in generated:
            raise ValueError(f"{text}: {names[left]} already has a generator")
        generated[left] = right, f"{names[left]}={_signed(names, right)}"
    for left, (right, text) in generated.items():
        if circular := [each for each in right.factors if each in generated]:
            raise ValueError(f"{text}: {names[circular[0]]} has a generator of its own; use factors without one")
        if len(right.factors) < 2:
            raise ValueError(
                f"{text}: {names[left]} would be the same as {names[right.factors[0]]}; use at least two factors"
            )
    base = [each for each in range(len(names)) if each not in generated]
    if 2 ** len(base) > MOST:
        raise ValueError(f"{2 ** len(base)} treatments; at most {MOST}: add generators")
    defining = _group([_times((left,), right) for left, (right, _) in generated.items()])
    resolution = min((len(word.factors) for word in defining), default=None)
    if resolution is not None and resolution < 3:
        same = next(word for word in defining if len(word.factors) == resolution).factors
        raise ValueError(
            f"{names[same[0]]} and {names[same[1]]} would be aliased: their generators have the same factors"
        )
    treatments = [
        _run(len(names), dict(zip(base, levels, strict=True)), generated)
        for levels in product((0, 1), repeat=len(base))
    ]
    return Fraction(names, tuple(treatments), tuple(text for _, text in generated.values()), defining, resolution)


def _generator(names: Sequence[str], text: str) -> tuple[int, Word]:
    left, equal, right = (part.strip() for part in text.partition("="))
    sign = -1 if right.startswith("-") else 1
    right = right.lstrip("+-").strip()
    if not equal or not left or not right:
        raise ValueError(f"{text}: not a generator; write it as D=ABC or as name=name*name")
    parts = [part.strip() for part in re.split(rf"[*{TIMES}]", right)]
    if len(parts) == 1 and right not in names:  # factor letters without separators
        parts = list(right)
    wanted = [_number(names, part, text) for part in parts]
    if len(set(wanted)) < len(wanted):
        raise ValueError(f"{text}: names the same factor twice")
    number = _number(names, left, text)
    if number in wanted:
        raise ValueError(f"{text}: {names[number]} is on both sides")
    return number, Word(tuple(sorted(wanted)), sign)


def _number(names: Sequence[str], name: str, text: str) -> int:
    if name in names:
        return names.index(name)
    if len(name) == 1 and name in LETTERS[: len(names)]:
        return LETTERS.index(name)
    raise ValueError(f"{text}: {name}: no such factor; the factors are {', '.join(names)}")


def _run(factors: int, base: dict[int, int], generated: dict[int, tuple[Word, str]]) -> Treatment:
    levels = dict(base)
    for left, (word, _) in generated.items():
        negative = sum(1 - base[each] for each in word.factors) % 2
        levels[left] = int((not negative) == (word.sign > 0))
    return tuple(levels[each] for each in range(factors))


def _times(effect: Sequence[int], word: Word) -> Word:
    return Word(tuple(sorted(set(effect) ^ set(word.factors))), word.sign)


def _group(words: Sequence[Word]) -> tuple[Word, ...]:
    """All products of one or more words."""
    group: list[Word] = []
    for word in words:
        products = (_times(each.factors, word) for each in group)
        group += [word, *(Word(new.factors, new.sign * old.sign) for new, old in zip(products, group, strict=True))]
    return tuple(sorted(group, key=_length))


def _length(word: Word) -> tuple[int, tuple[int, ...]]:
    return len(word.factors), word.factors


def _signed(names: Sequence[str], word: Word) -> str:
    return ("-" if word.sign < 0 else "") + "*".join(names[each] for each in word.factors)


MOST_WORDS = 3_000_000
"""The maximum number of words in the search for the best generators. A search of this size takes a few seconds."""


def best_fraction(names: Sequence[str], runs: int) -> Fraction:
    """The fraction with `runs` runs (a power of two) that has the highest resolution and, among these, the least
    aberration.

    The first factors are those without a generator. Raises ValueError if `runs` is not a power of two from 2 to MOST,
    if it does not suit the number of factors, or if the search would take too long.
    """
    k, m = len(names), runs.bit_length() - 1
    if runs < 2 or runs != 1 << m:
        raise ValueError(f"{runs} runs: the number of runs in a fraction must be a power of two, at least 2")
    if runs > MOST:
        raise ValueError(f"{runs} runs: at most {MOST} treatments are supported; set a smaller number of runs")
    if m > k:
        raise ValueError(f"{runs} runs are more than the {1 << k} treatments of {k} factors")
    if k > runs - 1 and k > m:
        raise ValueError(f"{k} factors need at least {1 << k.bit_length()} runs")
    chosen = _search(m, k - m)
    texts = [f"{names[m + place]}={'*'.join(names[each] for each in column)}" for place, column in enumerate(chosen)]
    return fraction(names, texts)


def _search(base: int, wanted: int) -> list[tuple[int, ...]]:
    """For each factor with a generator, the base factors whose product defines it. Raises ValueError after MOST_WORDS
    words.
    """
    columns = [each for size in range(base, 1, -1) for each in combinations(range(base), size)]
    masks = [sum(1 << each for each in column) for column in columns]
    best: tuple[tuple[int, ...], list[int]] | None = None
    tried = 0

    def deeper(chosen: list[int], words: list[int], pattern: tuple[int, ...]) -> None:
        nonlocal best, tried
        if best is not None and pattern >= best[0]:  # further generators can only add words
            return
        if len(chosen) == wanted:
            best = pattern, chosen
            return
        for at in range(chosen[-1] + 1 if chosen else 0, len(columns) - (wanted - len(chosen)) + 1):
            tried += len(words) + 1
            if tried > MOST_WORDS:
                raise ValueError(f"{base + wanted} factors in {1 << base} runs are too many to search; give generators")
            new = masks[at] | 1 << (base + len(chosen))
            more = [new, *(word ^ new for word in words)]
            counts = list(pattern)
            for word in more:
                counts[word.bit_count()] += 1
            deeper([*chosen, at], words + more, tuple(counts))

    deeper([], [], (0,) * (base + wanted + 1))
    assert best is not None
    return [columns[at] for at in best[1]]
