"""Whether `cbench doctor` is right: planted differences among new processes on the same machine.

    python tests/benchmarks/doctor.py [ROUNDS] [--quick] [--busy]

In each round `cbench doctor` names a difference. Then its processes of the next round, which it has not seen, are drawn
into 50 pairs of sides, one side is made slower by the named difference or by a third of it, and the test of `cbench
compare` looks for it. Wanted: found in 70 to 90 %, a third of it in less than 30 %, equal code called different in at
most 7 of 100. With --busy a loop keeps another CPU busy at the same time. Nothing is changed on this host.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cbench.compare.stats import HIGHER, LOWER, compare_samples

ROUNDS, PAIRS, SIDE = 3, 50, 10


@contextmanager
def neighbour(wanted: bool) -> Iterator[None]:
    """A busy loop on the first CPU; the doctor measures on the last."""
    if not wanted:
        yield
        return
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    os.sched_setaffinity(loop.pid, {min(os.sched_getaffinity(0))})
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


def examined(quick: bool) -> tuple[float, list[float], str]:
    """The difference that is named, the processes' headlines, the sentence."""
    words = [sys.executable, "-P", "-m", "cbench", "doctor", "--json", *(["--quick"] if quick else [])]
    result = json.loads(subprocess.run(words, check=True, capture_output=True, cwd=ROOT).stdout)
    return result["detectable"]["difference"], result["headlines"], result["verdict"]


def outcomes(headlines: list[float], planted: float, rng: np.random.Generator) -> dict[str, int]:
    counts = {HIGHER: 0, LOWER: 0}
    for _ in range(PAIRS):
        a, b = (rng.choice(headlines, size=SIDE) for _ in range(2))
        outcome = compare_samples([[x] for x in a], [[x * (1 + planted)] for x in b], "median", 0.05).outcome
        counts[outcome] = counts.get(outcome, 0) + 1
    return counts


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    rounds = int(words[0]) if words else ROUNDS
    rng = np.random.default_rng(1)
    with neighbour("--busy" in sys.argv):
        named, _, sentence = examined("--quick" in sys.argv)
        for _ in range(rounds):
            following, fresh, next_sentence = examined("--quick" in sys.argv)
            found, third, same = (outcomes(fresh, planted, rng) for planted in (named, named / 3, 0.0))
            print(sentence)
            print(
                f"  {100 * named:.3g} % found in {100 * found[HIGHER] / PAIRS:.0f} % of {PAIRS} among {len(fresh)} new "
                f"processes, a third of it in {100 * third[HIGHER] / PAIRS:.0f} %; equal code called different in "
                f"{100 * (same[HIGHER] + same[LOWER]) / PAIRS:.0f} %",
                flush=True,
            )
            named, sentence = following, next_sentence


if __name__ == "__main__":
    main()
