"""Write docs/verdict-sentences.md: the first line of 40 simulated studies' verdicts beside the true effects.

`make verdict-sentences`. Each row is the first simulated study of a situation that `make error-rates` counts, so no
study is selected by its verdict.
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

The table gives the first line of a command's verdict on a simulated study, beside the planted effects. `make
verdict-sentences` writes it. [error-rates.md](error-rates.md) counts the verdicts in the same situations; each row is
the first simulated study of its situation, whatever its verdict. In the studies of `cbench order`, values are 100 plus
noise; normal noise has a standard deviation (sd) of 1.

A verdict that reports no difference does not claim that there is no effect. At an error rate of 5 %, two of 40 studies
without any effect would have a false alarm on average.
"""


@dataclass(frozen=True)
class Situation:
    """A simulated situation. `true`: the planted effect. `say`: simulates the study in a directory, and returns the
    verdict's first line and the exit code.
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


NOTHING, SPREAD = "no effect", "no difference in location; the spread differs"
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
        "first position 2 sd slower",
        "t0 is slower at the first position",
        Simulated(tests=5, fixed=100, random=100, place=2),
    ),
    order("2 sd slower after t1", "t0 is slower after t1", Simulated(tests=5, fixed=100, random=100, after=2)),
    compare("8 and 8 processes", NOTHING, Suite()),
    compare("30 benchmarks, 8 and 8 processes", NOTHING, Suite(30)),
    compare("1 and 1 processes", NOTHING, Suite(1, 1, 1)),
    compare("20 and 1 processes", NOTHING, Suite(1, 20, 1)),
    compare("each process draws one of two layouts, 1 and 1 processes", NOTHING, Suite(1, 1, 1, layouts=True)),
    compare("each process draws one of two layouts, 4 and 4 processes", NOTHING, Suite(1, 4, 4, layouts=True)),
    compare("8 and 8 processes, 2 % faster", "B is 2 % faster", Suite(faster=0.02)),
    compare(
        "10 and 10 processes, 3 % slower, --threshold 3%",
        "B is 3 % slower",
        Suite(1, 10, 10, slower=0.03),
        "--threshold",
        "3%",
    ),
    compare("20 benchmarks, 10 and 10 processes", "one of the benchmarks is 5 % faster in B", Suite(20, 10, 10, 0.05)),
    *(screen(f"12 iterations, {kind}", NOTHING, cube(kind, 12)) for kind in ("normal", "log-normal", "coarse clock")),
    screen("one iteration, normal", NOTHING, cube("normal", 1)),
    screen("no iterations, rows sorted by value", NOTHING, by_value("normal")),
    screen("12 iterations, a tenth of the trials failed", NOTHING, cube("log-normal", 12, failed=0.1)),
    screen("hard factor, boots of 3 sd", "no effect of any factor; the boots differ", boots),
    screen("4 iterations, 1.25 sd", "factor a raises the values by 1.25 sd", cube("normal", 4, 1.25)),
    screen("12 iterations, 0.8 sd, log-normal", "factor a raises the values by 0.8 sd", cube("log-normal", 12, 0.8)),
)


def page() -> str:
    """The text of the page."""
    lines = [HEAD, "| situation | true effects | verdict | exit code |", "| --- | --- | --- | ---: |"]
    for each in SITUATIONS:
        with TemporaryDirectory() as folder:
            said, code = each.say(Path(folder))
        lines.append(f"| {each.name} | {each.true} | {said.replace('|', '/')} | {code} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TARGET.write_text(page(), encoding="utf-8")
    print(f"{TARGET} written: {len(SITUATIONS)} studies")
