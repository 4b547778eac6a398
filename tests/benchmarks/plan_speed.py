"""How fast `quiet plan` is: cold against `pyperf system show`, paired, and on a large machine made of files.

    python tests/benchmarks/plan_speed.py

Prints medians of ten pairs in milliseconds and their ratio; nothing is changed on this host.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.trees import cpufreq, machine, plant

PAIRS = 10


def milliseconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    quiet = str(Path(sys.executable).with_name("quiet"))
    rival = [sys.executable, "-m", "pyperf", "system", "show"]
    for words in (["plan"], ["verify", "--duration", "0"]):
        milliseconds([quiet, *words])
        milliseconds(rival)
        pairs = [(milliseconds([quiet, *words]), milliseconds(rival)) for _ in range(PAIRS)]
        ours, theirs = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratio = statistics.median(a / b for a, b in pairs)
        print(f"quiet {' '.join(words)} {ours:.0f} ms, pyperf system show {theirs:.0f} ms, ratio {ratio:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        plant(Path(folder), machine(cpus=1024, threads=2, nodes=8, irqs=10000) | cpufreq(1024, "acpi-cpufreq"))
        large = [milliseconds([quiet, "plan", "--root", folder]) for _ in range(PAIRS)]
        print(f"quiet plan, 1,024 CPUs and 10,000 interrupts: median {statistics.median(large):.0f} ms")


if __name__ == "__main__":
    main()
