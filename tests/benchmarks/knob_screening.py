"""How often `cbench screen knobs` names the knobs that matter, and others, on simulated hosts; prints a table.

    python tests/benchmarks/knob_screening.py [SCREENINGS]

48 knobs. The causes that matter add 0.5, 1, 2, 5 or 10 times the level of the full profile, drawn for each; each is
removed by one knob. Noise: the standard deviation of an application, as a share of that level; it grows with the square
root of the response. "named": the quiet host itself names three of four knobs that matter, and two that do not. All:
the share of the screenings that name every knob that matters. False: that name any other. Profile: whose smallest
profile is exactly those knobs. SCREENINGS (400) of each kind; all seeds are fixed.
"""

from __future__ import annotations

import random
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.cbench.knobs.simulated import BURSTS, HEAVY, NORMAL, SimulatedHost, knobs, screened

KNOBS, SIZES = 48, (0.5, 1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Situation:
    matter: int
    noise: float
    kind: str = NORMAL
    named: bool = False
    applications: int = 40
    drift: float = 0.0
    largest: bool = False

    @property
    def words(self) -> str:
        more = [self.kind] if self.kind != NORMAL else []
        more += ["longest gap"] if self.largest else []
        more += [f"drift of {self.drift:.0%}"] if self.drift else []
        more += ["named"] if self.named else []
        return ", ".join([f"{self.matter} matter, noise {self.noise:.0%}", *more])


SITUATIONS = (
    *(Situation(matter, noise) for noise in (0.02, 0.05) for matter in (0, 1, 4, 8)),
    *(Situation(matter, 0.1) for matter in (0, 4, 8)),
    *(Situation(8, noise, named=True) for noise in (0.02, 0.05, 0.1)),
    *(Situation(8, noise, applications=60) for noise in (0.05, 0.1)),
    *(Situation(4, 0.05, kind, named) for kind in (HEAVY, BURSTS) for named in (False, True)),
    Situation(4, 0.05, BURSTS, applications=80),
    Situation(4, 0.05, drift=0.2),
    Situation(4, 0.05, largest=True),
)
Outcome = tuple[bool, bool, bool, bool, bool, int]


def one(situation: Situation, seed: int) -> Outcome:
    """Named all, named at most one other, named none other, exact profile, difference holds 0; applications."""
    draw = random.Random(seed)
    every = knobs(KNOBS)
    names = [knob.name for knob in every]
    matter = draw.sample(names, situation.matter)
    sizes = [size for size in SIZES if size > 1] if situation.largest else SIZES
    causes = [(frozenset({name}), draw.choice(sizes)) for name in matter]
    suspects = [name for name in matter if draw.random() < 0.75] + draw.sample(names, 2) if situation.named else []
    host = SimulatedHost(
        causes,
        noise=situation.noise,
        kind=situation.kind,
        drift=situation.drift,
        largest=situation.largest,
        seed=seed,
    )
    search = screened(host, every, most=situation.applications, suspects=suspects)
    false = {each.knob for each in search.findings()} - set(matter)
    found = search.difference()
    alike = not search.dropped or (found is not None and found.low <= 0 <= found.high)
    complete = set(matter) <= set(search.matter)
    return complete, len(false) <= 1, not false, set(search.kept) == set(matter), alike, host.applications


def row(situation: Situation, count: int) -> str:
    with ProcessPoolExecutor() as pool:
        outcomes = list(pool.map(one, [situation] * count, range(count), chunksize=25))
    complete, _, none, exact, alike, _ = (
        100 * fmean(float(each) for each in column) for column in zip(*outcomes, strict=True)
    )
    made = fmean(each[-1] for each in outcomes)
    both = 100 * fmean(each[0] and each[1] for each in outcomes)
    return (
        f"| {situation.words} | {situation.applications} | {made:.1f} | {complete:.1f} | "
        f"{100 - none:.1f} | {both:.1f} | {exact:.1f} | {alike:.1f} |"
    )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 400
    print(f"{count} screenings of {KNOBS} knobs in each situation; all but the applications in %")
    print("| situation | applications, at most | applications, mean | all | false |", end="")
    print(" all, at most 1 false | profile | interval holds 0 |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for situation in SITUATIONS:
        print(row(situation, count), flush=True)


if __name__ == "__main__":
    main()
