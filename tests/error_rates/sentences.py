"""Write docs/verdict-sentences.md: the first line of 40 simulated studies' verdicts beside the true effects.

`make verdict-sentences`. Each row is a study of the situations that `make error-rates` counts, with the first of its
numbers: no study is chosen by its verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from cbench.screen.analysis.options import ScreenOptions
from tests import CHECKOUT
from tests.cbench.screen.screens import screened, table
from tests.error_rates.compare import DIFFER, Suite
from tests.error_rates.order import NULLS, SPREADS, Simulated
from tests.error_rates.screen import Make, boots, by_value, cube

TARGET = CHECKOUT / "docs" / "verdict-sentences.md"
NUMBER = 0
HEAD = """# Verdicts of simulated studies

The first line of each command's verdict on a simulated study, beside the planted effects. Written by
`make verdict-sentences`; the studies are the first ones of the situations that [error-rates.md](error-rates.md)
counts, not chosen by their verdicts. In `order` values are 100 and noise with a standard deviation (sd) of 1.

"Nothing was found" does not claim that there is no effect. Of 40 studies without any effect two would on average have a
false alarm at a rate of 5 %.
"""


@dataclass(frozen=True)
class Situation:
    """`true`: the planted effect. `say`: simulates the study in a directory; the verdict's first line and the exit
    code.
    """

    name: str
    true: str
    say: Callable[[Path], tuple[str, int]]


def order(name: str, true: str, simulated: Simulated, *options: str) -> Situation:
    def say(folder: Path) -> tuple[str, int]:
        result, code = simulated.analyzed(NUMBER, folder, *options)
        verdict = result["verdict"]
        assert isinstance(verdict, list)
        return str(verdict[0]), code

    return Situation(f"order: {name}", true, say)


def compare(name: str, true: str, suite: Suite, *options: str) -> Situation:
    def say(folder: Path) -> tuple[str, int]:
        result, code = suite.compared(NUMBER, folder, *options)
        rows = result["comparisons"]
        if len(rows) == 1:
            return str(rows[0]["verdict"]), code
        counts = ", ".join(f"{number} {outcome}" for outcome, number in result["summary"]["outcomes"].items())
        named = ", ".join(each["test"] for each in rows if each["outcome"] in DIFFER)
        return f"{counts}{f' ({named})' if named else ''}", code

    return Situation(f"compare: {name}", true, say)


def screen(name: str, true: str, make: Make) -> Situation:
    def say(folder: Path) -> tuple[str, int]:
        rows = make(np.random.default_rng([NUMBER, 1855]))
        made = screened(table(folder / "data.csv", rows), ScreenOptions(subsamples=0))[0]
        return made.verdict[0], int(made.factors_matter)

    return Situation(f"screen: {name}", true, say)


NOTHING, SPREAD = "no effect", "no difference of location; the spread differs"
WALK = Simulated(walk=0.3, fixed=100, random=100)

SITUATIONS: tuple[Situation, ...] = (
    *(order(name, NOTHING, each) for name, each in NULLS.items()),
    *(order(name, SPREAD, each) for name, each in SPREADS.items()),
    order("random walk of 0.3 sd per run, 100 + 100 runs", "no effect; the host drifts", WALK),
    order("blocked, random walk", "no effect; the host drifts", Simulated(walk=0.3, design="blocked")),
    order(
        "random walk, 100 + 100 runs, shift of 0.5 sd",
        "random order is 0.5 % higher; the host drifts",
        Simulated(walk=0.3, fixed=100, random=100, shift=0.5),
    ),
    order(
        "50 + 50 runs, shift of 1 sd",
        "t0 is 1 % higher in random order",
        Simulated(tests=5, fixed=50, random=50, shift=1),
    ),
    order(
        "first place 2 sd slower", "t0 is slower in the first place", Simulated(tests=5, fixed=100, random=100, place=2)
    ),
    order("2 sd slower after t1", "t0 is slower after t1", Simulated(tests=5, fixed=100, random=100, after=2)),
    compare("8 and 8 processes", NOTHING, Suite()),
    compare("30 benchmarks, 8 and 8 processes", NOTHING, Suite(30)),
    compare("1 and 1 process", NOTHING, Suite(1, 1, 1)),
    compare("20 processes and 1", NOTHING, Suite(1, 20, 1)),
    compare("two layouts drawn, 1 and 1 process", NOTHING, Suite(1, 1, 1, layouts=True)),
    compare("two layouts drawn, 4 and 4 processes", NOTHING, Suite(1, 4, 4, layouts=True)),
    compare("8 and 8 processes, 2 % faster", "B is 2 % faster", Suite(faster=0.02)),
    compare(
        "10 and 10 processes, 3 % slower, --threshold 3%",
        "B is 3 % slower",
        Suite(1, 10, 10, slower=0.03),
        "--threshold",
        "3%",
    ),
    compare("20 benchmarks, 10 and 10 processes", "one of 20 is 5 % faster", Suite(20, 10, 10, 0.05)),
    *(screen(f"12 iterations, {kind}", NOTHING, cube(kind, 12)) for kind in ("normal", "log-normal", "coarse clock")),
    screen("one iteration, normal", NOTHING, cube("normal", 1)),
    screen("no iterations, rows sorted by value", NOTHING, by_value("normal")),
    screen("a tenth of the trials failed", NOTHING, cube("log-normal", 12, failed=0.1)),
    screen("hard factor, boots of 3 sd", "no effect of a factor; boots differ", boots),
    screen("4 iterations, 1.25 sd", "a raises by 1.25", cube("normal", 4, 1.25)),
    screen("12 iterations, 0.8 sd, log-normal", "a raises by 0.8", cube("log-normal", 12, 0.8)),
)


def page() -> str:
    """The whole text."""
    lines = [HEAD, "| situation | what is true | what is reported | exit |", "| --- | --- | --- | ---: |"]
    for each in SITUATIONS:
        with TemporaryDirectory() as folder:
            said, code = each.say(Path(folder))
        lines.append(f"| {each.name} | {each.true} | {said.replace('|', '/')} | {code} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(f"{TARGET} written: {len(SITUATIONS)} studies")
