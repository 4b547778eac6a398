"""`cbench run -- ./prog` beside `hyperfine -N ./prog`, in turn, for programs of about 5 ms, 100 ms and 2 s.

    python tests/benchmarks/commands.py [ROUNDS] [HYPERFINE]

HYPERFINE: the program, else that of the PATH (Debian's package `hyperfine`). Both start the program directly, without a
shell, and decide themselves how many runs they take. In each round hyperfine measures before and after cbench; printed
are the medians with their intervals at 95 % (by ranks, for all), how often each median lies in the other's interval,
for cbench and hyperfine and, as what this machine allows, for hyperfine and hyperfine, the ratio of the intervals'
widths, and that of the total times. Wanted: as often inside as hyperfine's own, widths and times at most 1 and 1.2.
With `--shell` as the last word both go through /bin/sh, whose time hyperfine takes off and cbench includes.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cbench.stats.median_ranks import ranks

ROUNDS = 3
WANTED_S = (0.005, 0.1, 2.0)
SOURCE = """
#include <stdint.h>
#include <stdlib.h>
int main(int count, char **words)
{
	uint64_t x = 1, n = count > 1 ? strtoull(words[1], 0, 10) : 0;
	for (uint64_t i = 0; i < n; i++) {
		x = x * 3 + 1;
		x ^= x >> 7;
		__asm__ volatile("" : : "r"(x));
	}
	return 0;
}
"""


@dataclass(frozen=True)
class Answer:
    """What a tool has measured, in seconds; `took`: by itself."""

    times: list[float]
    took: float

    @property
    def median(self) -> float:
        return statistics.median(self.times)

    @property
    def interval(self) -> tuple[float, float]:
        ordered, places = sorted(self.times), ranks(len(self.times), 0.95)
        return (ordered[places[0] - 1], ordered[places[1] - 1]) if places else (ordered[0], ordered[-1])

    @property
    def width(self) -> float:
        return self.interval[1] - self.interval[0]

    def holds(self, value: float) -> bool:
        return self.interval[0] <= value <= self.interval[1]

    def agrees(self, other: Answer) -> bool:
        """Whether each median lies in the other's interval."""
        return self.holds(other.median) and other.holds(self.median)


def hyperfine(tool: str, command: list[str], shell: bool, folder: Path) -> Answer:
    file = folder / "hyperfine.json"
    begin = time.monotonic()
    options = ["--style", "none", *([] if shell else ["-N"]), "--export-json", str(file)]
    subprocess.run([tool, *options, " ".join(command)], check=True, capture_output=True)
    return Answer(json.loads(file.read_text())["results"][0]["times"], time.monotonic() - begin)


def cbench(command: list[str], shell: bool) -> Answer:
    begin = time.monotonic()
    words = [sys.executable, "-P", "-m", "cbench", "run", "--json", *(["--shell"] if shell else []), "--", *command]
    done = subprocess.run(
        words, check=True, capture_output=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT), "PATH": "/bin"}
    )
    trials = json.loads(done.stdout)["results"][0]["trials"]
    return Answer([value / 1e9 for value in trials], time.monotonic() - begin)


def turns(program: Path, seconds: float) -> int:
    """The argument with which the program takes about so long: from the fastest of five runs."""
    probe, taken = 20_000_000, []
    for _ in range(5):
        begin = time.monotonic()
        subprocess.run([program, str(probe)], check=True)
        taken.append(time.monotonic() - begin)
    return int(probe * seconds / min(taken))


def shown(answer: Answer) -> str:
    low, high = answer.interval
    counted = f"{len(answer.times)} runs, {answer.took:.1f} s"
    return f"{1e3 * answer.median:9.3f} ms ({1e3 * low:.3f} to {1e3 * high:.3f}, {counted})"


def main() -> None:
    words = sys.argv[1:]
    shell = "--shell" in words
    words = [word for word in words if word != "--shell"]
    rounds = int(words[0]) if words else ROUNDS
    tool = words[1] if len(words) > 1 else shutil.which("hyperfine")
    if tool is None:
        print("left out: hyperfine is not installed (Debian's package `hyperfine`, or its path as the second word)")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "prog.c").write_text(SOURCE)
        subprocess.run(["cc", "-O2", "-o", str(folder / "prog"), str(folder / "prog.c")], check=True)
        for wanted in WANTED_S:
            command = [str(folder / "prog"), str(turns(folder / "prog", wanted))]
            inside, control, widths, times = [], [], [], []
            for _ in range(rounds):
                before = hyperfine(tool, command, shell, folder)
                ours = cbench(command, shell)
                after = hyperfine(tool, command, shell, folder)
                inside += [ours.agrees(before), ours.agrees(after)]
                control.append(before.agrees(after))
                widths.append(2 * ours.width / (before.width + after.width))
                times.append(2 * ours.took / (before.took + after.took))
                lines = (f"hyperfine {shown(before)}", f"cbench {shown(ours)}", f"hyperfine {shown(after)}")
                print(f"{wanted * 1e3:g} ms: {'; '.join(lines)}", flush=True)
            print(
                f"{wanted * 1e3:g} ms: medians in both intervals {sum(inside)} of {len(inside)}, of hyperfine and "
                f"hyperfine {sum(control)} of {rounds}; interval {statistics.median(widths):.2f} times as wide; total "
                f"time {statistics.median(times):.2f} times"
            )


if __name__ == "__main__":
    main()
