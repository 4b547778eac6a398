"""A host whose noise is known: causes, which knobs remove each, and noise between applications."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import sqrt

from cbench.knobs.design import NONE, SEARCH, LeftOut, ScreenedKnob, SearchOptions
from cbench.knobs.run import RESERVE
from cbench.knobs.search import Search

NORMAL, BURSTS, HEAVY = "normal", "bursts", "heavy tails"


@dataclass
class SimulatedHost:
    """`causes`: each with the knobs that remove it (any one does), and its size. `worse`: what a knob itself adds.

    noise: standard deviation of an application's value, as a share of the level of the full profile; it grows with the
    square root of the response, as that of counts of events does. bursts: in 5 % of the applications something
    else adds up to 20 times that. heavy tails: Student's t with 3 degrees of freedom.
    """

    causes: Sequence[tuple[frozenset[str], float]]
    worse: Mapping[str, float] = field(default_factory=dict)
    level: float = 1.0
    noise: float = 0.05
    kind: str = NORMAL
    largest: bool = False
    drift: float = 0.0
    seed: int = 1
    applications: int = 0

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)

    def truth(self, left_out: LeftOut) -> float:
        """Without noise."""
        open_ = [size for removed_by, size in self.causes if removed_by <= left_out]
        own = sum(size for name, size in self.worse.items() if name not in left_out)
        return (max([self.level, *open_]) if self.largest else self.level + sum(open_)) + own

    def __call__(self, left_out: LeftOut) -> float:
        """An application."""
        value, draw = self.truth(left_out), self._draw
        sd = self.noise * self.level * sqrt(value / self.level)
        shake = draw.gauss(0, 1)
        if self.kind == HEAVY:
            shake /= sqrt(draw.gammavariate(1.5, 1) / 1.5) * sqrt(3)
        value += sd * shake + self.drift * self.level * self.applications / 40
        if self.kind == BURSTS and draw.random() < 0.05:
            value += draw.uniform(5, 20) * self.noise * self.level
        self.applications += 1
        return max(0.0, value)


def knobs(number: int, needs: Mapping[str, str] | None = None) -> tuple[ScreenedKnob, ...]:
    names = [f"k{at:02}" for at in range(number)]
    return tuple(ScreenedKnob(name, (needs or {}).get(name, "")) for name in names)


def one_each(matter: Sequence[str], size: float = 1.0) -> list[tuple[frozenset[str], float]]:
    return [(frozenset({name}), size) for name in matter]


def screened(
    host: SimulatedHost,
    every: Sequence[ScreenedKnob],
    options: SearchOptions | None = None,
    most: int = 40,
    suspects: Sequence[str] = (),
) -> Search:
    """The search on this host. `suspects`: what the measurement without any knob names."""
    search = Search(every, options or SearchOptions(seed=host.seed, adds=not host.largest))
    while search.next is not None and host.applications < most:
        if search.next.phase == SEARCH and most - host.applications <= RESERVE:
            search.conclude()
            continue
        search.add(host(search.next.left_out), suspects if search.next.why == NONE else ())
    return search
