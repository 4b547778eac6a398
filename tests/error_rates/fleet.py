"""Error rates and power of `cbench order analyze` on several hosts, beside the result of pooling the hosts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.error_rates.commands import said
from tests.error_rates.rate import Rate, Study

HEAD = "test,order,run,position,value,host"


@dataclass(frozen=True)
class SimulatedFleet:
    """A study of one test on `hosts`: `runs` on each, paired in time or (`drawn`) in any order. A value is 100 plus
    noise with a standard deviation of 1.

    `unlike`: standard deviation of the hosts' levels. `skew`: the share of random runs rises with the host's level, as
    if slow hosts did not finish. `shift`: added in random order; `by`: the standard deviation of the shift over hosts;
    `away`: added to the level of the last host. `spread`: the standard deviation of the noise on every second host.
    """

    hosts: int
    runs: int = 20
    unlike: float = 5.0
    drawn: bool = False
    skew: bool = False
    shift: float = 0.0
    by: float = 0.0
    away: float = 0.0
    spread: float = 3.0

    def rows(self, number: int) -> list[str]:
        draw = np.random.default_rng([number, 2027])
        levels = np.sort(self.unlike * draw.normal(size=self.hosts))
        levels[-1] += self.away
        lines = []
        for host, level in enumerate(levels.tolist()):
            some = self.runs // 2
            if self.skew:
                some = round(self.runs * (0.25 + 0.5 * host / max(self.hosts - 1, 1)))
            kinds = np.arange(self.runs) % 2 == 1
            if self.drawn or self.skew:
                kinds = draw.permutation(np.arange(self.runs) < some)
            effect = self.shift + self.by * draw.normal()
            noise = draw.normal(size=self.runs) * (self.spread if host % 2 else 1.0)
            for run, random in enumerate(kinds.tolist()):
                value = 100 + level + noise[run] + (effect if random else 0.0)
                lines.append(f"t,{'random' if random else 'fixed'},{run},0,{value:.9g},node{host}")
        return lines

    def analyzed(self, number: int, folder: Path, *options: str) -> tuple[dict[str, object], int]:
        path = folder / "fleet.csv"
        path.write_text("\n".join([HEAD, *self.rows(number)]) + "\n")
        return said("order", "analyze", str(path), *options)

    def finds(self, family: str = "orders", *options: str) -> Study:
        """Whether the verdict names a claim of this family."""

        def study(number: int, folder: Path) -> bool:
            claims: list[dict[str, object]] = self.analyzed(number, folder, *options)[0]["claims"]  # type: ignore[assignment]
            return any(each["family"] == family and each["named"] for each in claims)

        return study

    def pooled(self) -> Study:
        """Whether pooled ranks, which the verdict does not use, are significant at 5 %."""
        return lambda number, folder: bool(self.analyzed(number, folder)[0]["hosts"]["pooled_significant"])  # type: ignore[index]

    def matters(self) -> Study:
        """Whether the command exits with 1: the order matters."""
        return lambda number, folder: self.analyzed(number, folder)[1] == 1


FALSE = "`cbench order analyze`, several hosts that differ: false alarms without any effect"
POWER = "`cbench order analyze`, several hosts that differ: detected effects"
SIZES = (2, 5, 20, 200)


def _runs(hosts: int) -> int:
    return 10 if hosts > 50 else 20


RATES: tuple[Rate, ...] = (
    Rate(FALSE, "1 host, 20 runs", SimulatedFleet(1).matters(), 0, 5),
    *(
        Rate(FALSE, f"{n} hosts, {_runs(n)} runs each, in pairs", SimulatedFleet(n, _runs(n)).matters(), 0, 5)
        for n in SIZES
    ),
    *(
        Rate(
            FALSE,
            f"{n} hosts, {_runs(n)} runs each, more random runs on slow hosts",
            SimulatedFleet(n, _runs(n), skew=True).matters(),
            0,
            5,
        )
        for n in SIZES
    ),
    *(
        Rate(
            FALSE,
            f"{n} hosts, {_runs(n)} runs each, more random runs on slow hosts, pooled ranks",
            SimulatedFleet(n, _runs(n), skew=True).pooled(),
            50 if n > 2 else 30,
            100,
        )
        for n in SIZES
    ),
    Rate(FALSE, "20 hosts: hosts reported to differ in the effect", SimulatedFleet(20).finds("interaction"), 0, 5),
    Rate(FALSE, "20 hosts: a host reported to be unlike the others", SimulatedFleet(20).finds("unlike"), 0, 5),
    *(
        Rate(POWER, f"shift of 1 sd, {n} hosts, 20 runs each", SimulatedFleet(n, shift=1, spread=1).finds(), low, 100)
        for n, low in ((2, 40), (5, 90), (20, 99))
    ),
    Rate(
        POWER,
        "shift of 1 sd, 5 hosts, 20 runs each, runs in any order",
        SimulatedFleet(5, shift=1, spread=1, drawn=True).finds(),
        90,
    ),
    Rate(
        POWER,
        "shift of 1 sd, 5 hosts, 20 runs each, runs in any order, pooled ranks",
        SimulatedFleet(5, shift=1, spread=1, drawn=True).pooled(),
        0,
        50,
    ),
    Rate(
        POWER,
        "the effect differs between 5 hosts by 2 sd: interaction reported",
        SimulatedFleet(5, by=2, spread=1).finds("interaction"),
        80,
    ),
    Rate(
        POWER,
        "one of 20 hosts 8 sd of the host levels away: reported as unlike",
        SimulatedFleet(20, unlike=1, away=8, spread=1).finds("unlike"),
        90,
    ),
)
