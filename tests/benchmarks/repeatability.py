"""How well the number that a tool prints repeats: cbench, pyperf and google/benchmark, in turn, the same C function.

    python tests/benchmarks/repeatability.py [ROUNDS] [TRIALS] [N]

In each round each tool measures the hash workload once (N turns; 100,000, and then again with 1,000,000), on one CPU,
each in its own usual way: `cbench run` one process of TRIALS trials, pyperf ten processes of three values,
google/benchmark ten repetitions, all some seconds long. Printed are the range of each headline over the rounds, in
percent of its median, and of cbench how wide the clean trials lie and what an empty region takes. Nothing is changed on
this host. google/benchmark is Debian's libbenchmark-dev; without it, it is left out.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cbench._build import FLAGS

ROUNDS = 10
SIZES = {100_000: 5000, 1_000_000: 1000}  # turns of the hash: trials
INSIDE = ROOT / "tests" / "benchmarks" / "inside"
SOURCE = ROOT / "cbench" / "c" / "workloads" / "hash.c"
MOST_STEPS, MOST_EMPTY = 2, 60

Headlines = dict[str, float]


def run(command: Sequence[str], **environment: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    if done.returncode:
        raise SystemExit(f"{' '.join(command[:4])} ... exited with {done.returncode}: {done.stderr.strip()[-400:]}")
    return done.stdout


def library(folder: Path) -> Path:
    """The workload with the flags of cbench's own, for those who load it."""
    run(["cc", *FLAGS, "-fPIC", "-shared", f"-I{SOURCE.parents[1]}", "-o", str(folder / "work.so"), str(SOURCE)])
    return folder / "work.so"


def google(folder: Path) -> Path | None:
    """The benchmark's program, None where it cannot be built."""
    run(["cc", *FLAGS, f"-I{SOURCE.parents[1]}", "-c", "-o", str(folder / "work.o"), str(SOURCE)])
    parts = [str(INSIDE / "repeat_google.cc"), str(folder / "work.o")]
    command = ["c++", "-std=c++17", "-O2", *parts, "-lbenchmark", "-lpthread", "-o", str(folder / "google")]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return folder / "google" if done.returncode == 0 else None


def by_cbench(cpu: int, trials: int, n: int, seen: list[dict[str, Any]]) -> Headlines:
    command = [str(Path(sys.executable).with_name("cbench")), "run", "hash", "--cpu", str(cpu), "--json"]
    found = json.loads(run([*command, "--param", f"n={n}", "--trials", str(trials)]))["results"][0]
    seen.append(found)
    lowest = found["min"] if found["floor"] is None else found["floor"]
    return {"floor": lowest, "median": statistics.median(found["trials"]), "mean": statistics.fmean(found["trials"])}


def by_pyperf(cpu: int, shared: Path, folder: Path) -> Headlines:
    import pyperf

    file = folder / "pyperf.json"
    file.unlink(missing_ok=True)
    options = ["-q", "--processes=10", "--values=3", f"--affinity={cpu}", "--inherit-environ=REPEAT_LIBRARY,REPEAT_N"]
    script = str(INSIDE / "repeat_pyperf.py")
    run([sys.executable, script, *options, f"--output={file}"], REPEAT_LIBRARY=str(shared))
    (benchmark,) = pyperf.BenchmarkSuite.load(str(file))
    return {"mean": benchmark.mean(), "median": benchmark.median(), "min": min(benchmark.get_values())}


def by_google(cpu: int, program: Path) -> Headlines:
    options = ["--benchmark_repetitions=10", "--benchmark_format=json"]
    each = json.loads(run(["taskset", "-c", str(cpu), str(program), *options]))["benchmarks"]
    times = [one["real_time"] for one in each if one["run_type"] == "iteration"]
    return {"mean": statistics.fmean(times), "median": statistics.median(times), "min": min(times)}


def span(values: Sequence[float]) -> float:
    """Range in percent of the median."""
    return 100 * (max(values) - min(values)) / statistics.median(values)


def table(found: dict[str, list[Headlines]]) -> None:
    print(f"{'tool':<18}{'headline':<10}{'range':>12}{'lowest':>16}{'highest':>16}{'different':>11}")
    for tool, rounds in found.items():
        for name in rounds[0]:
            values = [each[name] for each in rounds]
            shown = [f"{value:,.0f}" if value >= 1000 else f"{value:.9g}" for value in (min(values), max(values))]
            different = f"{len(set(values))} of {len(values)}"
            print(f"{tool:<18}{name:<10}{span(values):>10.4f} %{shown[0]:>16}{shown[1]:>16}{different:>11}")


def holds(what: str, text: str, yes: bool) -> None:
    print(f"{what}: {text}: {'yes' if yes else 'NO'}")


def judge(rounds: Sequence[Headlines], seen: Sequence[dict[str, Any]]) -> None:
    counter = seen[0]["counter"]
    step = counter["quantum"] or 1
    kept = [one["clean_trials"] for one in seen]
    widths = [one["range"] / step for one in kept if one["range"] is not None]
    shares = ", ".join(f"{100 * one['share']:.1f}" for one in kept)
    print(f"cbench counts {counter['unit']} in steps of {step}; clean: {kept[0]['means']}")
    print(f"trials exactly on the floor: {', '.join(str(one['at_floor']) for one in seen)}; clean: {shares} %")
    floors = [each["floor"] for each in rounds]
    unsure = sum(one["floor"] is None for one in seen)
    note = f" ({unsure} of them without a value that repeats: their lowest)" if unsure else ""
    holds("range of the floors", f"{span(floors):.4f} %{note}, 0.000 % wanted", round(span(floors), 3) == 0)
    widest = f"{max(widths):.2f} steps, {len(widths)} of {len(seen)} known" if widths else "not known"
    fits = len(widths) == len(seen) and max(widths) <= MOST_STEPS
    holds("widest clean set", f"{widest}, at most {MOST_STEPS} wanted", fits)
    empty = [one["counter"]["overhead_median"] for one in seen]
    text = f"{min(empty)} to {max(empty)} {counter['unit']}, at most {MOST_EMPTY} wanted"
    holds("median of an empty region", text, max(empty) <= MOST_EMPTY)


def main(arguments: Sequence[str]) -> None:
    rounds, trials, n = (int(arguments[place]) if len(arguments) > place else None for place in range(3))
    for size, usual in SIZES.items() if n is None else [(n, SIZES.get(n, 1000))]:
        measure(rounds or ROUNDS, trials or usual, size)


def measure(rounds: int, trials: int, n: int) -> None:
    """All tools in turn, and what is said of them."""
    os.environ["REPEAT_N"] = str(n)
    cpu = max(os.sched_getaffinity(0))
    seen: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared, program = library(folder), google(folder)
        tools: dict[str, Callable[[], Headlines]] = {
            "cbench": lambda: by_cbench(cpu, trials, n, seen),
            "pyperf": lambda: by_pyperf(cpu, shared, folder),
        }
        if program is not None:
            tools["google/benchmark"] = lambda: by_google(cpu, program)
        else:
            print("google/benchmark is left out: it needs a C++ compiler and Debian's libbenchmark-dev")
        found: dict[str, list[Headlines]] = {tool: [] for tool in tools}
        for number in range(rounds):
            for tool in sorted(tools, reverse=bool(number % 2)):
                found[tool].append(tools[tool]())
    print(
        f"{rounds} rounds of n = {n:,} on CPU {cpu}, in turn; load of this machine at the end {os.getloadavg()[0]:.1f}"
    )
    table(found)
    judge(found["cbench"], seen)


if __name__ == "__main__":
    main(sys.argv[1:])
