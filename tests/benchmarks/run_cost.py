"""What a short `quiet run` costs in a guest of the lab: beside `sudo true`, and beside pyperf's tune and reset.

    python tests/benchmarks/run_cost.py [MACHINE] [ROUNDS]

Prints medians in milliseconds, and the median of the ratios within a round with its range.
"""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.lab.harness import debian
from tests.lab.harness.boot import boot
from tests.lab.harness.machines import MACHINES

SCRIPT = """
. tests/lab/guest/users.sh
python -m tests.lab.guest.run_cost >$LAB_OUT/times.json
"""
OVER = {"lingering": "sudo true", "alone": "pyperf"}


def main() -> None:
    machine, rounds = [*sys.argv[1:], *("plain-6.12", "7")[len(sys.argv) - 1 :]]
    env = {"SUDO": str(debian.programs("sudo", ["sudo"])), "ROUNDS": rounds}
    result = boot(MACHINES[machine], SCRIPT, timeout=3000, env=env)
    if result.code:
        sys.exit(result.output)
    for part, times in json.loads(result.files["times.json"]).items():
        base = times[OVER[part]]
        for name, values in times.items():
            ratios = [value / other for value, other in zip(values, base, strict=True)]
            low, high = min(ratios), max(ratios)
            print(
                f"{part:>9}  {name:<15} {1e3 * statistics.median(values):7.0f} ms  "
                f"{statistics.median(ratios):5.2f} times {OVER[part]} ({low:.2f} to {high:.2f})"
            )


if __name__ == "__main__":
    main()
