"""The noise detector beside oslat: the resolution of each, the gaps that each finds, and the causes that each reports.

    python tests/benchmarks/detector.py [PAIRS [SECONDS]]

Both run in turn on the last CPU, as ordinary tasks, without the kernel's tracing; nothing is changed on this host.
A period is the time of a run by the readings in it: in all, with everything that interrupted the run, and net, without
what each saw itself lose. What oslat lost is known only where its last bucket, which has no upper end, is empty: on a
busy machine few runs have a net period. Runs are compared in pairs, because what else runs on the machine changes from
one second to the next. oslat is in Debian's rt-tests.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from quiet.host.host import Host
from quiet.noise.attribute import HOST, STALL, UNKNOWN, Cause
from quiet.noise.call_nesting import COUNTED, FAULT, THREAD, VECTOR
from quiet.noise.measure import NoiseRequest, measure

PAIRS, SECONDS = 7, 3.0
BUCKETS = 1024  # the most that oslat has, of 1 us each
MOST = 2 / 3  # of oslat's period
SMALLEST_NS = 100.0
LONG_NS = 8_000  # from here on a gap ought to have a cause
ATTRIBUTED = 0.95  # of these
CATEGORIES = {VECTOR: "tick", COUNTED: "other interrupt", THREAD: "task", FAULT: "page fault", HOST: "host"}


@dataclass(frozen=True, slots=True)
class Seen:
    """One run. `smallest`: the shortest gap it distinguishes from none; `finest`: the shortest one in this run."""

    period: float
    net: float | None
    smallest: float
    finest: float
    over_1us: int
    over_10us: int
    causes: Counter[str]


def ours(cpu: int, seconds: float) -> Seen:
    measured = measure(Host(), NoiseRequest(frozenset({cpu}), seconds, trace=False))
    clock, on = measured.clock, measured.cpus[cpu]
    watched = on.watched
    causes = Counter(category(each.parts[0][0]) for each in on.account.explained if clock.ns(each.gap.length) > LONG_NS)
    return Seen(
        period=clock.ns(watched.end - watched.begin) / watched.readings,
        net=clock.ns(watched.end - watched.begin - watched.lost - watched.looking) / watched.readings,
        smallest=clock.ns(watched.threshold),
        finest=clock.ns(watched.shortest),
        over_1us=sum(clock.ns(gap.length) >= 1_000 for gap in watched.gaps),
        over_10us=sum(clock.ns(gap.length) >= 10_000 for gap in watched.gaps),
        causes=causes,
    )


def category(cause: Cause) -> str:
    return "none" if cause.kind in (UNKNOWN, STALL) else CATEGORIES[cause.kind]


def theirs(cpu: int, main: int, seconds: float) -> Seen:
    """Its bucket N has what took from N-1 up to N microseconds."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "json"
        command = ["oslat", "--quiet", f"--cpu-list={cpu}", f"--cpu-main-thread={main}"]
        command += [f"--duration={round(seconds)}", f"--bucket-size={BUCKETS}", f"--json={file}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not file.exists():
            raise SystemExit(f"oslat exited with {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}")
        (thread,) = json.loads(file.read_text())["thread"].values()
    buckets = {int(name): count for name, count in thread["histogram"].items()}
    samples = sum(buckets.values())
    lost = sum((name - 0.5) * 1e3 * count for name, count in buckets.items() if name > 1)
    return Seen(
        period=thread["duration"] * 1e9 / samples,
        net=None if buckets.get(BUCKETS) else (thread["duration"] * 1e9 - lost) / samples,
        smallest=1_000.0,
        finest=1_000.0 * min((name - 1 for name in buckets if name > 1), default=0),
        over_1us=sum(count for name, count in buckets.items() if name > 1),
        over_10us=sum(count for name, count in buckets.items() if name > 10),
        causes=Counter(),
    )


def spread(values: Sequence[float], digits: int = 0) -> str:
    if not values:
        return "not known"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def table(runs: dict[str, list[Seen]]) -> None:
    rows: tuple[tuple[str, Callable[[Seen], float | None], int], ...] = (
        ("loop period in all, ns", lambda seen: seen.period, 1),
        ("loop period net, ns", lambda seen: seen.net, 1),
        ("shortest gap it can show, ns", lambda seen: seen.smallest, 0),
        ("shortest gap seen, ns", lambda seen: seen.finest, 0),
        ("gaps of 1 us and more", lambda seen: float(seen.over_1us), 0),
        ("gaps of 10 us and more", lambda seen: float(seen.over_10us), 0),
    )
    print(f"{'median (least to most)':<30}" + "".join(f"{name:>26}" for name in runs))
    for text, value, digits in rows:
        known = [[found for seen in each if (found := value(seen)) is not None] for each in runs.values()]
        print(f"{text:<30}" + "".join(f"{spread(values, digits):>26}" for values in known))
    print(f"{'causes':<30}" + "".join(f"{'named' if all_[0].causes else 'none named':>26}" for all_ in runs.values()))


def holds(what: str, text: str, yes: bool) -> None:
    print(f"{what}: {text}: {'yes' if yes else 'NO'}")


def judge_periods(mine: Sequence[Seen], others: Sequence[Seen]) -> None:
    pairs = list(zip(mine, others, strict=True))
    gross = [a.period / b.period for a, b in pairs]
    net = [a.net / b.net for a, b in pairs if a.net and b.net]
    best = min(seen.period for seen in mine) / min(seen.period for seen in others)
    print(f"period beside oslat's, in all: {spread(gross, 2)}, best run beside best run {best:.2f}")
    print(f"period beside oslat's, net: {spread(net, 2)}, known of {len(net)} of {len(pairs)} pairs")
    ratio = statistics.median(net or gross)
    holds("at most 2/3 of oslat's", f"{ratio:.2f} {'net' if net else 'in all'}", ratio <= MOST)


def judge_causes(mine: Sequence[Seen]) -> None:
    total: Counter[str] = Counter()
    for seen in mine:
        total.update(seen.causes)
    if not total:
        print(f"no gap was longer than {LONG_NS / 1000:.0f} us")
        return
    parts = ", ".join(f"{name} {100 * count / total.total():.1f} %" for name, count in total.most_common())
    print(f"of {total.total()} gaps longer than {LONG_NS / 1000:.0f} us, without tracing: {parts}")
    share = 1 - total["none"] / total.total()
    holds(
        "put to some cause, right or wrong",
        f"{100 * share:.1f} %, at least {100 * ATTRIBUTED:.0f} % wanted",
        share >= ATTRIBUTED,
    )


def main(arguments: Sequence[str]) -> None:
    pairs = int(arguments[0]) if arguments else PAIRS
    seconds = float(arguments[1]) if len(arguments) > 1 else SECONDS
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        print("one CPU only: the rest of the system has to run somewhere, so nothing is measured")
        return
    cpu = others[-1]
    rival = shutil.which("oslat") is not None
    if not rival:
        print("oslat is not installed (Debian: rt-tests), so only `quiet noise` is measured")
    runs: dict[str, list[Seen]] = {name: [] for name in ["quiet noise", "oslat"][: 1 + rival]}
    for number in range(pairs):
        for name in sorted(runs, reverse=bool(number % 2)):  # each is first as often as the other
            runs[name].append(ours(cpu, seconds) if name != "oslat" else theirs(cpu, first, seconds))
    print(f"{pairs} runs of {seconds:.0f} s each on CPU {cpu}, in turn")
    table(runs)
    mine = runs["quiet noise"]
    if rival:
        judge_periods(mine, runs["oslat"])
    finest = min(seen.finest for seen in mine)
    holds(f"shortest gap seen at most {SMALLEST_NS:.0f} ns", f"{finest:.0f} ns", 0 < finest <= SMALLEST_NS)
    judge_causes(mine)


if __name__ == "__main__":
    main(sys.argv[1:])
