"""Error rates and power of `cbench order analyze`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tests.error_rates.commands import said
from tests.error_rates.rate import Rate, Study

Values = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int], Values]

HEAD = "test,order,run,position,value"
NORMAL: Draw = lambda draw, n: draw.normal(size=n)  # noqa: E731
LONG: Draw = lambda draw, n: draw.lognormal(0, 0.5, size=n) / 0.604  # noqa: E731
ONE_DIGIT: Draw = lambda draw, n: np.asarray(draw.normal(size=n).round(1), dtype=np.float64)  # noqa: E731
FIVE: Draw = lambda draw, n: draw.choice(5, size=n, p=(0.1, 0.2, 0.4, 0.2, 0.1)).astype(float)  # noqa: E731
TWO: Draw = lambda draw, n: draw.integers(0, 2, size=n).astype(float)  # noqa: E731
RARE: Draw = lambda draw, n: 10.0 * (draw.random(n) < 0.05)  # noqa: E731
"""A coarse clock: all values are equal, except for rare slow trials."""


@dataclass(frozen=True)
class Simulated:
    """A study: `fixed` and `random` runs of `tests`, interleaved or not. A value is 100 plus noise from `draw`.

    `walk`: standard deviation of the host's random drift from run to run; `ramp`: steady drift over the whole study.
    `spread`: the factor on the noise of random runs. `shift`, `place`, `after`: added to the first test in random
    order, at the first position, and after the second test. `bare`: omit the columns run and position.
    """

    draw: Draw = NORMAL
    tests: int = 1
    fixed: int = 30
    random: int = 30
    design: str = "interleaved"
    walk: float = 0.0
    ramp: float = 0.0
    spread: float = 1.0
    shift: float = 0.0
    place: float = 0.0
    after: float = 0.0
    bare: bool = False

    def kinds(self, draw: np.random.Generator) -> list[bool]:
        """Whether the order of each run is random, in chronological order."""
        runs = [False] * self.fixed + [True] * self.random
        if self.design == "blocked":
            return runs
        if self.design == "drawn":
            return [bool(each) for each in draw.permutation(runs)]
        return [bool(number % 2) for number in range(self.fixed + self.random)]

    def rows(self, number: int) -> list[str]:
        draw = np.random.default_rng([number, 2026])
        kinds = self.kinds(draw)
        host = np.cumsum(self.walk * draw.normal(size=len(kinds))) + self.ramp * np.arange(len(kinds)) / len(kinds)
        lines = []
        for run, random in enumerate(kinds):
            order = draw.permutation(self.tests) if random else np.arange(self.tests)
            noise = self.draw(draw, self.tests) * (self.spread if random else 1.0)
            for position, test in enumerate(order.tolist()):
                value = noise[position] + host[run]
                if test == 0 and random:
                    value += self.shift + self.place * (position == 0)
                    value += self.after * (position > 0 and order[position - 1] == 1)
                where = f"t{test},{'random' if random else 'fixed'}"
                lines.append(
                    f"{where},{100 + value:.9g}" if self.bare else f"{where},{run},{position},{100 + value:.9g}"
                )
        return lines

    def analyzed(self, number: int, folder: Path, *options: str) -> tuple[dict[str, object], int]:
        path = folder / "study.csv"
        path.write_text("\n".join(["test,order,value" if self.bare else HEAD, *self.rows(number)]) + "\n")
        return said("order", "analyze", str(path), *options)

    def matters(self, *options: str) -> Study:
        """Whether the command exits with 1: the order matters."""
        return lambda number, folder: self.analyzed(number, folder, *options)[1] == 1

    def claims(self) -> Study:
        """Whether any claim is made at the study's alpha."""
        return lambda number, folder: any(each["named"] for each in self.analyzed(number, folder)[0]["claims"])  # type: ignore[attr-defined]

    def finds(self, family: str, *options: str) -> Study:
        """Whether the verdict names a claim of this family."""

        def study(number: int, folder: Path) -> bool:
            claims: list[dict[str, object]] = self.analyzed(number, folder, *options)[0]["claims"]  # type: ignore[assignment]
            return any(each["family"] == family and each["named"] for each in claims)

        return study

    def cannot_tell(self) -> Study:
        """Whether the command exits with 2."""
        return lambda number, folder: self.analyzed(number, folder)[1] == 2


NULL = "`cbench order analyze`: false alarms (exit 1 without any effect)"
SAID = "`cbench order analyze`: any claim without any effect"
DRIFT = "`cbench order analyze`: on a drifting host"
POWER = "`cbench order analyze`: detected effects"

NULLS: dict[str, Simulated] = {
    "normal, 1 test, 30 + 30 runs": Simulated(),
    "normal, 5 tests, 20 + 20 runs": Simulated(tests=5, fixed=20, random=20),
    "normal, 20 tests, 10 + 10 runs": Simulated(tests=20, fixed=10, random=10),
    "long-tailed (lognormal), 5 tests, 20 + 20 runs": Simulated(LONG, tests=5, fixed=20, random=20),
    "tied (one digit), 5 tests, 20 + 20 runs": Simulated(ONE_DIGIT, tests=5, fixed=20, random=20),
    "five levels, 5 tests, 30 + 30 runs": Simulated(FIVE, tests=5),
    "two levels, 1 test, 50 + 50 runs": Simulated(TWO, fixed=50, random=50),
    "coarse clock with rare slow trials, 5 tests, 50 + 50 runs": Simulated(RARE, tests=5, fixed=50, random=50),
    "unequal arms, 60 + 5 runs, 20 tests, ties": Simulated(ONE_DIGIT, 20, 60, 5, "drawn", bare=True),
    "unequal arms, two levels, 60 + 5 runs": Simulated(TWO, 5, 60, 5, "drawn", bare=True),
    "coarse clock with rare slow trials, 60 + 3 runs": Simulated(RARE, 5, 60, 3, "drawn", bare=True),
    "runs in any order, 5 tests, 25 + 25 runs": Simulated(tests=5, fixed=25, random=25, design="drawn"),
}
SPREADS: dict[str, Simulated] = {
    "random order with 3 times the spread, 20 + 20 values": Simulated(fixed=20, random=20, spread=3, bare=True),
    "random order with 3 times the spread, 40 + 10 values": Simulated(
        fixed=40, random=10, spread=3, design="drawn", bare=True
    ),
    "random order with 10 times the spread, 40 + 10 values": Simulated(
        fixed=40, random=10, spread=10, design="drawn", bare=True
    ),
    "random order with 3 times the spread, 30 pairs of runs": Simulated(spread=3),
}

RATES: tuple[Rate, ...] = (
    *(Rate(NULL, name, each.matters(), 0, 5) for name, each in NULLS.items()),
    *(Rate(SAID, name, each.claims(), 0, 5) for name, each in list(NULLS.items())[1:3]),
    Rate(SAID, "normal, 5 tests, 2 + 1 runs", Simulated(tests=5, fixed=2, random=1).claims(), 0, 5),
    *(
        Rate(
            "`cbench order analyze`: a difference in location claimed although only the spread differs",
            name,
            each.finds("orders"),
            0,
            6,
        )
        for name, each in SPREADS.items()
    ),
    Rate(
        DRIFT,
        "no effect, random walk of 0.3 sd per run, 100 + 100 runs",
        Simulated(walk=0.3, fixed=100, random=100).matters(),
        0,
        5,
    ),
    Rate(
        DRIFT, "no effect, steady drift of 3 sd, 50 + 50 runs", Simulated(ramp=3, fixed=50, random=50).matters(), 0, 6
    ),
    Rate(
        DRIFT,
        "blocked, random walk: order and time cannot be distinguished (exit 2)",
        Simulated(walk=0.3, design="blocked").cannot_tell(),
        100,
    ),
    Rate(
        DRIFT,
        "shift of 0.5 sd, random walk of 0.3 sd per run, 100 + 100 runs, paired",
        Simulated(walk=0.3, fixed=100, random=100, shift=0.5).finds("orders"),
        85,
    ),
    Rate(
        DRIFT,
        "shift of 0.5 sd, random walk of 0.3 sd per run, 100 + 100 runs, --unpaired",
        Simulated(walk=0.3, fixed=100, random=100, shift=0.5).finds("orders", "--unpaired"),
        0,
        60,
    ),
    Rate(
        POWER,
        "shift of 0.5 sd in 1 of 5 tests, 100 + 100 runs",
        Simulated(tests=5, fixed=100, random=100, shift=0.5).finds("orders"),
        70,
    ),
    Rate(
        POWER,
        "shift of 1 sd in 1 of 5 tests, 50 + 50 runs",
        Simulated(tests=5, fixed=50, random=50, shift=1).finds("orders"),
        95,
    ),
    Rate(
        POWER,
        "three times the spread, 50 + 50 runs",
        Simulated(fixed=50, random=50, spread=3).finds("spread"),
        90,
    ),
    Rate(
        POWER,
        "first place 2 sd slower in 1 of 5 tests, 100 + 100 runs",
        Simulated(tests=5, fixed=100, random=100, place=2).finds("position"),
        95,
    ),
    Rate(
        POWER,
        "2 sd slower after one of 5 tests, 100 + 100 runs",
        Simulated(tests=5, fixed=100, random=100, after=2).finds("predecessor"),
        95,
    ),
)
