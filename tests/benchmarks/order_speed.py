"""How fast `cbench order analyze` is on 2.3 and 23 million synthetic values, against a plain loop of pandas and scipy.

    python tests/benchmarks/order_speed.py [--large]

1,880 configurations, 2 orders, 610 trials: long-tailed, five digits (many ties), half of them shifted. Each command is
a whole process with its start-up; the medians of PAIRS alternating pairs are printed with their ratios, of the time on
the clock and of the CPUs (which other work on the host hardly changes), and the peak memory. --large also reads ten
times as many values.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

CONFIGURATIONS, TRIALS = 1880, 610
PAIRS = 3
SEED = 20231124

READ = """
import sys
import pandas as pd
from scipy.stats import kruskal

path = sys.argv[1]
data = pd.read_parquet(path) if path.endswith("parquet") else pd.read_csv(path)
"""
LOOPS = {
    "a loop over tests": """
found = 0
for _, each in data.groupby("test", sort=False):
    fixed, random = each.loc[each["order"] == "fixed", "value"], each.loc[each["order"] == "random", "value"]
    found += kruskal(fixed.to_numpy(), random.to_numpy()).pvalue < 0.05 / 1880
print(found)
""",
    "a loop over tests and orders": """
samples = {}
for (test, _), values in data.groupby(["test", "order"])["value"]:
    samples.setdefault(test, []).append(values.to_numpy())
print(sum(kruskal(*each).pvalue < 0.05 / 1880 for each in samples.values()))
""",
}

SAME_TESTS = """
import numpy as np
from scipy import stats

data = data.sort_values(["run", "position"])
data["before"] = data.groupby("run")["test"].shift().fillna("")
found = 0
for _, each in data.groupby("test", sort=False):
    random = each["order"] == "random"
    one, other = each.loc[~random, "value"].to_numpy(), each.loc[random, "value"].to_numpy()
    inside = each[random]
    within = [[part.to_numpy() for _, part in inside.groupby(by)["value"]] for by in ("position", "before")]
    p = [
        kruskal(one, other).pvalue, stats.brunnermunzel(one, other).pvalue, stats.fligner(one, other).pvalue,
        stats.wilcoxon(other, one).pvalue, *(kruskal(*parts).pvalue for parts in within),
        stats.spearmanr(each["run"], each["value"]).pvalue,
    ]
    found += p[0] < 0.05 / 1880
print(found)
"""
"""What analyze does with runs and positions, as far as scipy has it: no intervals, no predecessors by their names."""


def table(configurations: int, trials: int, full: bool) -> pa.Table:
    """Rows in the order of configurations; `full`: with run and position too."""
    draw = np.random.default_rng(SEED)
    rows = 2 * trials
    value = np.empty(configurations * rows)
    random = np.tile(np.arange(rows) % 2 == 1, configurations)
    for number in range(configurations):
        spread = draw.uniform(0.002, 0.05)
        made = draw.uniform(1, 1e4) * (1 + spread * draw.lognormal(0, 0.8, rows))
        if number % 2:
            made[1::2] *= 1 + draw.normal(0, spread / 2)
        digits = 10.0 ** (np.floor(np.log10(made)) - 4)
        value[number * rows : (number + 1) * rows] = np.round(made / digits) * digits
    names = pa.array([f"node-{n % 20}/test-{n // 20}" for n in range(configurations)])
    test = pa.DictionaryArray.from_arrays(pa.array(np.repeat(np.arange(configurations, dtype=np.int32), rows)), names)
    order = pa.DictionaryArray.from_arrays(pa.array(random.astype(np.int32)), pa.array(["fixed", "random"]))
    columns = {"test": test.cast(pa.string()), "order": order.cast(pa.string())}
    if full:
        columns["run"] = pa.array(np.tile(np.arange(rows), configurations))
        columns["position"] = pa.array(_positions(draw, configurations, rows))
    return pa.table(columns | {"value": value})


def _positions(draw: np.random.Generator, configurations: int, rows: int) -> np.ndarray:
    """Of each configuration in each run: as listed in the fixed ones, drawn in the random ones."""
    place = np.tile(np.arange(configurations)[:, None], (1, rows))
    place[:, 1::2] = draw.permuted(place[:, 1::2], axis=0)
    return place.ravel()


@dataclass(frozen=True)
class Used:
    """Of a process: seconds on the clock and of all CPUs, and at most so many MB."""

    wall: float
    cpu: float
    memory: float


def measured(command: list[str]) -> Used:
    """A whole process, whose exit code must be 0 or 1."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1), command
    return Used(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def ours(path: Path) -> list[str]:
    return [str(Path(sys.executable).with_name("cbench")), "order", "analyze", str(path), "--json"]


def compare(what: str, path: Path, loops: Mapping[str, str] = LOOPS) -> None:
    measured(ours(path))  # from now on the file is in memory
    for name, code in loops.items():
        against(what, path, name, [sys.executable, "-c", READ + code, str(path)])


def against(what: str, path: Path, name: str, loop: list[str]) -> None:
    pairs = [(measured(ours(path)), measured(loop)) for _ in range(PAIRS)]
    mine, theirs = (_middle([pair[side] for pair in pairs]) for side in (0, 1))
    wall = statistics.median(other.wall / one.wall for one, other in pairs)
    cpu = statistics.median(other.cpu / one.cpu for one, other in pairs)
    print(f"{what}: {mine}; {name} {theirs}: {wall:.1f} times faster, {cpu:.1f} times less of CPUs", flush=True)


def _middle(every: list[Used]) -> str:
    wall, cpu = (statistics.median(getattr(each, name) for each in every) for name in ("wall", "cpu"))
    return f"{wall:.2f} s ({cpu:.2f} s of CPUs), {max(each.memory for each in every):.0f} MB"


def written(folder: Path, large: bool) -> None:
    """The files, by a process of its own: a process's peak memory begins with that of the one that starts it."""
    made = table(CONFIGURATIONS, TRIALS, full=False)
    pa.parquet.write_table(made, folder / "plain.parquet")
    pa.csv.write_csv(made, folder / "plain.csv")
    pa.parquet.write_table(table(CONFIGURATIONS, TRIALS, full=True), folder / "full.parquet")
    if large:
        pa.parquet.write_table(table(10 * CONFIGURATIONS, TRIALS, full=False), folder / "large.parquet")


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        written(Path(sys.argv[2]), "--large" in sys.argv)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run([sys.executable, __file__, "--write", name, *sys.argv[1:]], check=True)
        compare("2.3 M values, Parquet", folder / "plain.parquet")
        compare("2.3 M values, CSV", folder / "plain.csv")
        if "--large" in sys.argv:
            base, most = (measured(ours(folder / f"{size}.parquet")) for size in ("plain", "large"))
            print(
                f"23 M values, Parquet: {most.wall:.2f} s ({most.cpu:.2f} s of CPUs), {most.memory:.0f} MB: "
                f"{most.wall / base.wall:.1f} times as long, {most.cpu / base.cpu:.1f} times as much of CPUs",
                flush=True,
            )
        compare("2.3 M values with run and position, Parquet", folder / "full.parquet")
        compare("2.3 M values with run and position, Parquet", folder / "full.parquet", {"the same tests": SAME_TESTS})


if __name__ == "__main__":
    main()
