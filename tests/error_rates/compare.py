"""Error rates and power of `cbench compare`."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tests.error_rates.commands import said
from tests.error_rates.rate import Rate, Study

DIFFER = ("lower", "higher")


@dataclass(frozen=True)
class Suite:
    """Two files of a suite, as pyperf writes them: each process draws its own level (sd 1 %), around which its trials
    vary little.

    `faster`: the share by which B's first benchmark is faster; `slower`: the share by which all benchmarks of B are
    slower. `layouts`: each process draws one of two constant values instead.
    """

    benchmarks: int = 1
    a: int = 8
    b: int = 8
    faster: float = 0.0
    slower: float = 0.0
    layouts: bool = False

    def file(self, path: Path, draw: np.random.Generator, processes: int, changed: bool) -> Path:
        benchmarks = []
        for number in range(self.benchmarks):
            faster = self.faster if changed and number == 0 else 0.0
            level = 1e-3 * (1 - faster) * (1 + (self.slower if changed else 0.0))
            if self.layouts:
                runs = [[level * draw.choice((1.0, 1.1))] * 5 for _ in range(processes)]
            else:
                own = level * np.exp(0.01 * draw.normal(size=processes))
                runs = [(each * np.exp(0.002 * draw.normal(size=5))).tolist() for each in own]
            name = {"name": f"b{number}", "unit": "second"}
            benchmarks.append({"metadata": name, "runs": [{"values": values} for values in runs]})
        path.write_text(json.dumps({"version": "1.0", "metadata": {}, "benchmarks": benchmarks}))
        return path

    def compared(self, number: int, folder: Path, *options: str) -> tuple[dict[str, Any], int]:
        draw = np.random.default_rng([number, 19])
        a = self.file(folder / "a.json", draw, self.a, False)
        b = self.file(folder / "b.json", draw, self.b, True)
        return said("compare", str(a), str(b), *options)

    def differs(self, first: bool = False) -> Study:
        """Whether any benchmark (or the first) is called faster or slower."""

        def study(number: int, folder: Path) -> bool:
            rows = self.compared(number, folder)[0]["comparisons"]
            return any(row["outcome"] in DIFFER for row in (rows[:1] if first else rows))

        return study

    def claimed(self, threshold: str, *outcomes: str) -> Study:
        """Whether any benchmark has one of these outcomes."""

        def study(number: int, folder: Path) -> bool:
            tests = self.compared(number, folder, "--threshold", threshold)[0]["tests"]
            return any(test["outcome"] in outcomes for test in tests.values())

        return study

    def fails(self, *options: str) -> Study:
        """Whether the gate fails: exit code 1."""
        return lambda number, folder: self.compared(number, folder, *options)[1] == 1


NULL = "`cbench compare`: any benchmark reported as faster or slower although none is"
SAME = "`cbench compare --threshold`: any benchmark reported as the same although all differ by the threshold"
GATE = "`cbench compare`: exit code 1 although nothing is slower"
POWER = "`cbench compare`: detected speedups"

RATES: tuple[Rate, ...] = (
    Rate(NULL, "1 benchmark, 8 and 8 processes", Suite().differs(), 3.5, 6),
    Rate(NULL, "30 benchmarks, 8 and 8 processes", Suite(30).differs(), 0, 5),
    Rate(NULL, "30 benchmarks, 20 and 20 processes", Suite(30, 20, 20).differs(), 0, 5),
    Rate(NULL, "1 benchmark, 4 and 4 processes", Suite(1, 4, 4).differs(), 0, 5),
    Rate(NULL, "1 and 1 processes", Suite(1, 1, 1).differs(), 0, 0),
    Rate(NULL, "20 and 1 processes", Suite(1, 20, 1).differs(), 0, 5),
    Rate(
        NULL, "each process draws one of two layouts, 1 and 1 processes", Suite(1, 1, 1, layouts=True).differs(), 0, 0
    ),
    Rate(
        NULL, "each process draws one of two layouts, 4 and 4 processes", Suite(1, 4, 4, layouts=True).differs(), 0, 5
    ),
    Rate(GATE, "20 benchmarks, 10 and 10 processes", Suite(20, 10, 10).fails(), 0, 2.5),
    Rate(
        GATE, "20 benchmarks, 10 and 10 processes, --threshold 1%", Suite(20, 10, 10).fails("--threshold", "1%"), 0, 2.5
    ),
    Rate(SAME, "1 benchmark, 3 % slower, --threshold 3%", Suite(1, 10, 10, slower=0.03).claimed("3%", "same"), 0, 5),
    Rate(
        SAME,
        "20 benchmarks, 3 % slower, --threshold 3%",
        Suite(20, 10, 10, slower=0.03).claimed("3%", "same"),
        *(0, 5),
    ),
    Rate(
        POWER,
        "1 of 20 benchmarks 5 % faster, --threshold 3%, 10 and 10 processes",
        Suite(20, 10, 10, 0.05).claimed("3%", "faster"),
        *(95, 100),
    ),
    Rate(POWER, "2 % faster (2 sd of the processes), 8 and 8 processes", Suite(faster=0.02).differs(True), 90),
    Rate(
        POWER,
        "1 of 30 benchmarks 2 % faster (2 sd of the processes), 20 and 20 processes",
        Suite(30, 20, 20, 0.02).differs(True),
        95,
    ),
)
