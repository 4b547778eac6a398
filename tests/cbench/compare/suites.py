"""Makes files of whole suites for the tests, as pyperf writes them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

CPU, PLATFORM = "Some CPU", "Linux-6.1.0-18-amd64-x86_64-with-glibc2.36"


def suite(
    path: Path,
    changes: Mapping[str, float],
    seed: int,
    processes: int = 10,
    spread: float = 0.002,
    unit: str = "second",
    **metadata: str,
) -> Path:
    """Each benchmark takes 1 ms times its change; its processes differ by `spread`."""
    draw = random.Random(seed)
    benchmarks = [
        {
            "metadata": {"name": name, "unit": unit},
            "runs": [{"values": [1e-3 * change * draw.lognormvariate(0, spread)]} for _ in range(processes)],
        }
        for name, change in changes.items()
    ]
    about = {"cpu_model_name": CPU, "platform": PLATFORM, **metadata}
    path.write_text(json.dumps({"version": "1.0", "metadata": about, "benchmarks": benchmarks}))
    return path


def names(number: int) -> dict[str, float]:
    """So many benchmarks without a change."""
    return {f"test_{letter}": 1.0 for letter in "abcdefghijklmnopqrstuvwxyz"[:number]}
