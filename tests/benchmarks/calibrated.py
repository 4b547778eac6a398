"""How well cycles by calibration repeat, beside the minimum of a perf_counter_ns loop and pyperf's minimum, in turn.

    python tests/benchmarks/calibrated.py [ROUNDS] [--busy] [--workload NAME ...] [--compare REPETITIONS]

Each round runs each tool once for each row, in a process of its own and in an order that turns: `cbench run`, 1,000
trials; a loop around perf_counter_ns in the same number of trials; pyperf, for hash alone. Printed are the range of
each tool's number over the rounds, in percent of its median, the known answer where there is one, and the cost: how
long a run takes with calibration and with ticks for the same number of kept trials. --busy keeps every other CPU busy,
in which case a number must be right or missing. --compare: A/A and A/B (0.1 % more work) comparisons of ten processes
per side, and how many of each show a difference. Nothing is changed on this host.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.benchmarks.repeatability import library

BIN = Path(sys.executable).parent
INSIDE = ROOT / "tests" / "benchmarks" / "inside"
TRIALS = 1000
ROWS: dict[str, tuple[str, dict[str, int]]] = {
    "hash 20k": ("hash", {"n": 20_000}),
    "hash 1M": ("hash", {"n": 1_000_000}),
    "sieve 300": ("sieve", {"n": 300}),
    "sieve 10k": ("sieve", {"n": 10_000}),
    "chase L1": ("chase", {"n": 20_000, "size": 16 * 1024}),
    "chase L2": ("chase", {"n": 20_000, "size": 256 * 1024}),
}
KNOWN = {"hash": 12.0, "chase L1": 4.0}
"""Cycles a round on AMD's Zen 3 and 4; chase: the load latency, where the L1 data cache holds the buffer."""
OWN = 200
"""Cycles of the two reads, the call and the end of the workload's loop, which are in each trial."""
LOOP = """
import json, os, sys, time
from cbench.workloads import registry
from cbench.workloads.loader import builtin
cpu, name, trials, given = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
os.sched_setaffinity(0, {cpu})
from cbench._cbench import ffi
workload = registry.find(name)
loaded = builtin(workload.function, registry.parameters(workload, given, False))
run, state, n = loaded.run, loaded.state, given["n"]
times = []
for _ in range(trials):
    begin = time.perf_counter_ns()
    run(state, n)
    times.append(time.perf_counter_ns() - begin)
print(min(times))
"""


def run(command: Sequence[str], **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ... exited with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def by_cbench(cpu: int, name: str, params: dict[str, int], *more: str) -> dict[str, Any]:
    given = [word for key, value in params.items() for word in ("--param", f"{key}={value}")]
    command = [str(BIN / "cbench"), "run", name, "--cpu", str(cpu), "--json", "--no-trace", *given, *more]
    found: dict[str, Any] = json.loads(run(command))["results"][0]
    return found


def by_loop(cpu: int, name: str, params: dict[str, int]) -> float:
    return float(run([sys.executable, "-c", LOOP, str(cpu), name, str(TRIALS), json.dumps(params)]))


def by_pyperf(cpu: int, shared: Path, n: int) -> float:
    import pyperf

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pyperf.json")
        options = ["-q", "--processes=3", "--values=3", f"--affinity={cpu}"]
        options += ["--inherit-environ=REPEAT_LIBRARY,REPEAT_N", f"--output={file}"]
        script = str(INSIDE / "repeat_pyperf.py")
        run([sys.executable, script, *options], REPEAT_LIBRARY=str(shared), REPEAT_N=str(n))
        (benchmark,) = pyperf.BenchmarkSuite.load(str(file))
        return float(min(benchmark.get_values()))


def span(values: Sequence[float]) -> float:
    """Range in percent of the median."""
    return 100 * (max(values) - min(values)) / statistics.median(values)


@contextmanager
def neighbors(cpu: int, busy: bool) -> Iterator[None]:
    """Every other CPU busy, where that is wanted."""
    others = sorted(os.sched_getaffinity(0) - {cpu}) if busy else []
    spin = "import os, sys\nos.sched_setaffinity(0, {int(sys.argv[1])})\nwhile True: pass"
    running = [subprocess.Popen([sys.executable, "-c", spin, str(other)]) for other in others]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def row(label: str, rounds: int, cpu: int, shared: Path) -> None:
    """One workload by all tools, and what it says."""
    name, params = ROWS[label]
    ours: list[dict[str, Any]] = []
    others: dict[str, list[float]] = {"perf_counter_ns loop": []}
    tools: list[Callable[[], None]] = [
        lambda: ours.append(by_cbench(cpu, name, params)),
        lambda: others["perf_counter_ns loop"].append(by_loop(cpu, name, params)),
    ]
    if name == "hash":
        others["pyperf minimum"] = []
        tools.append(lambda: others["pyperf minimum"].append(by_pyperf(cpu, shared, params["n"])))
    for number in range(rounds):
        for at in range(len(tools)):
            tools[(at + number) % len(tools)]()
    values = [each["headline"]["value"] for each in ours if each["headline"]["value"] is not None]
    kept = [each["calibration"]["kept"] / each["calibration"]["trials"] for each in ours if each.get("calibration")]
    line = f"{label:<10}{ours[0]['counter']['name']:<20}{len(values)} of {rounds} with a value"
    if values:
        line += f"  spread {span(values):.4f} %  median {statistics.median(values):,.1f}"
        line += f" ({statistics.median(values) / params['n']:.4f} a round)"
    if kept:
        line += f"  kept {min(kept):.0%} to {max(kept):.0%}"
    print(line)
    known = KNOWN.get(label, KNOWN.get(name))
    if known and values and platform.machine() == "x86_64":
        inside = [each["headline"]["interval"] for each in ours if each["headline"]["interval"]]
        right = sum(low <= known * params["n"] + OWN and high >= known * params["n"] for low, high in inside)
        print(
            f"          {right} of {len(inside)} intervals hold {known} cycles per round, or up to {OWN} for the region"
        )
    for tool, values in others.items():
        print(f"          {tool:<22}spread {span(values):.4f} %")


def cost(cpu: int) -> None:
    """A run with calibration against one with ticks, for the same number of kept trials; three of each in turn."""
    took: dict[str, list[float]] = {"calibrated-cycles": [], "ticks": []}
    clock = {"x86_64": "tsc", "aarch64": "cntvct"}[platform.machine()]
    for _ in range(3):
        for counter, times in took.items():
            begin = time.monotonic()
            options = ["--counter", clock if counter == "ticks" else counter]
            found = by_cbench(cpu, "hash", {"n": 20_000}, *options)
            kept = found["calibration"]["kept"] if found.get("calibration") else len(found["trials"])
            times.append((time.monotonic() - begin) / kept if kept else math.inf)
    ticks = statistics.median(took["ticks"])
    print(f"cost for each kept trial: {statistics.median(took['calibrated-cycles']) / ticks:.2f} times that with ticks")


def compare(cpu: int, repetitions: int) -> None:
    """How often ten processes per side show a difference: of nothing, and of 0.1 % more work."""
    shown = {"A/A": 0, "A/B": 0}
    for _ in range(repetitions):
        with tempfile.TemporaryDirectory() as folder:
            for side, n in (("a", 20_000), ("b", 20_000), ("c", 20_020)):
                options = ["--processes", "10", "--trials", "200", "-o", f"{folder}/{side}.db"]
                by_cbench(cpu, "hash", {"n": n}, *options)
            for label, other in (("A/A", "b"), ("A/B", "c")):
                sides = [f"{folder}/a.db:hash", f"{folder}/{other}.db:hash"]
                done = subprocess.run([BIN / "cbench", "compare", "--json", *sides], capture_output=True, check=False)
                outcomes = [each["outcome"] for each in json.loads(done.stdout)["comparisons"]] if done.stdout else []
                shown[label] += any(outcome in ("higher", "lower") for outcome in outcomes)
    print(
        f"a difference is shown in {shown['A/A']} of {repetitions} A/A and {shown['A/B']} of {repetitions} A/B (0.1 %)"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("rounds", nargs="?", type=int, default=10)
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--workload", choices=[*ROWS], action="append")
    parser.add_argument("--compare", type=int, default=0)
    options = parser.parse_args()
    cpu = max(os.sched_getaffinity(0))
    print(f"{options.rounds} rounds on CPU {cpu}, load {os.getloadavg()[0]:.1f}{', neighbors busy' * options.busy}")
    with tempfile.TemporaryDirectory() as folder, neighbors(cpu, options.busy):
        shared = library(Path(folder))
        for label in options.workload or ROWS:
            row(label, options.rounds, cpu, shared)
        if not options.busy:
            cost(cpu)
        if options.compare:
            compare(cpu, options.compare)


if __name__ == "__main__":
    main()
