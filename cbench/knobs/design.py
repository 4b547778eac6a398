"""Define the knobs of a screening, the order in which they may be left out, and the findings. No I/O.

If knob A `needs` knob B, A must not be applied without B. So B is left out only together with A. `ordered` lists A
before B, so that every prefix of the list can be left out by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from math import log
from typing import NamedTuple

from cbench.stats.random_draws import Stream

LeftOut = frozenset[str]

FULL, NONE, GROUP, AGAIN, WRITTEN, NAMED, SINGLE = (
    "the full profile",
    "no knob",
    "without a group",
    "again without a group",
    "the written profile",
    "without all knobs that matter",
    "without one knob",
)
SEARCH, VERIFY, CONFLICTS = "search", "verify", "conflicts"
PRIOR_KNOBS, PRIOR_MATTER = 8, 1
"""The prior: one knob in eight matters."""
UNLIKELY = 0.2
"""The probability that a knob matters is multiplied by this if sums of effects suggest that the knob is inert."""


@dataclass(frozen=True, slots=True)
class ScreenedKnob:
    """A knob whose setting the profile would change on this host; `needs`: the knob that it requires, "" for none."""

    name: str
    needs: str = ""


class Application(NamedTuple):
    """One application of the profile without the left-out knobs: apply, measure, restore. `phase`, `why`: the purpose
    of the application.
    """

    left_out: LeftOut
    phase: str
    why: str


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """The options of a search. `within`: deviations up to this share of the full profile's level count as no
    difference; `adds`: whether causes add up in the response, as for lost time, or only the largest cause counts, as
    for the longest gap.
    """

    within: float = 0.05
    alpha: float = 0.05
    seed: int = 1
    adds: bool = True


@dataclass(frozen=True, slots=True)
class NamedKnob:
    """A knob that matters. `sign`: as in KnobFinding; `key`: the knobs left out in the deciding measurement; `segment`:
    the index of the quiet level at that time.
    """

    knob: str
    sign: int
    key: LeftOut
    segment: int


@dataclass(frozen=True, slots=True)
class KnobFinding:
    """The estimated effect of a knob that matters. `sign`: 1 if the host is noisier without the knob, -1 if the knob
    itself makes noise.

    `effect`: the change in the response when the knob is left out, from `low` to `high`; `p`: corrected for all knobs.
    `repeats`: the number of measurements without the knob.
    """

    knob: str
    sign: int
    effect: float
    low: float
    high: float
    p: float
    repeats: int


@dataclass(frozen=True, slots=True)
class ProfileDifference:
    """The level of the smallest profile (`written`) minus the level of the full profile (`full`), with its interval
    from `low` to `high`. `pairs`: the number of pairs of applications, each in random order.
    """

    pairs: int
    written: float
    full: float
    low: float
    high: float


class Needs:
    """The requirements between knobs: for each knob, the knob without which it must not be applied."""

    def __init__(self, knobs: Iterable[ScreenedKnob]) -> None:
        knobs = tuple(knobs)
        known = {knob.name for knob in knobs}
        self._needs = {knob.name: knob.needs for knob in knobs if knob.needs in known}

    def of(self, name: str) -> tuple[str, ...]:
        """The knobs that this knob requires, directly or indirectly."""
        chain: list[str] = []
        while (name := self._needs.get(name, "")) and name not in chain:
            chain.append(name)
        return tuple(chain)

    def dependents(self, name: str) -> frozenset[str]:
        """The knobs that need this one, directly or indirectly."""
        return frozenset(other for other in self._needs if name in self.of(other))

    def closed(self, names: Iterable[str]) -> LeftOut:
        """These knobs, plus all knobs that need one of them."""
        chosen = set(names)
        return frozenset(chosen.union(*(self.dependents(name) for name in chosen)))

    def ordered(self, names: Collection[str], seed: int) -> list[str]:
        """The knobs in random order, except that each knob precedes the knobs that it needs."""
        shuffled = Stream(seed, "knobs").shuffled(sorted(names))
        return sorted(shuffled, key=lambda name: -len(self.of(name)))


def share_that_matters(matter: int, decided: int) -> float:
    """The probability that an undecided knob matters, estimated from the prior and the decided knobs."""
    return (PRIOR_MATTER + matter) / (PRIOR_KNOBS + decided)


def group_of(pool: Sequence[str], unlikely: Collection[str], share: float, needs: Needs) -> list[str]:
    """The next knobs to leave out together, in the pool's order. Their number is such that the group matters with a
    probability of about 1/2.
    """
    first = [name for name in pool if name not in unlikely] or list(pool)
    most = max(1, round(log(0.5) / log(1 - min(share * (1 if first[0] not in unlikely else UNLIKELY), 0.5))))
    chosen: set[str] = set()
    for name in first:
        more = needs.closed([name]) & set(pool)
        if chosen and len(chosen | more) > most:
            break
        chosen |= more
    return [name for name in pool if name in chosen]
