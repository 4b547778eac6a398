"""Run cases of damaged input until the time is up; every case can be repeated by its seed and number.

`python -m tests.fuzz --seconds 600` draws new cases; `--seed 5 --cases 100` are always the same hundred; `--seed 5
--first 42 --cases 1 --keep` repeats one and keeps its directory (with `--only KIND` when the run had it).
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.execute import execute, faults
from tests.fuzz.kinds import KINDS, Case
from tests.fuzz.seeds import Seeds


class Broken(NamedTuple):
    """A case that broke rules."""

    kind: str
    number: int
    command: tuple[str, ...]
    faults: tuple[str, ...]
    err: str


class Tally(NamedTuple):
    """Counts by kind of input."""

    cases: Counter[str]
    codes: Counter[tuple[str, int]]
    interrupted: Counter[str]
    broken: list[Broken]


def run(seeds: Seeds, seed: int, numbers: Iterator[int], until: float, only: str = "", keep: bool = False) -> Tally:
    """Run these cases, until a moment of time.monotonic()."""
    _load()
    tally = Tally(Counter(), Counter(), Counter(), [])
    makers = {make: share for make, share in KINDS.items() if only in ("", make.__name__)}
    for number in numbers:
        if time.monotonic() > until:
            break
        draw = random.Random(f"{seed} {number}")
        (make,) = draw.choices(list(makers), list(makers.values()))
        folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
        try:
            tally.broken.extend(_judge(tally, make.__name__, number, make(draw, folder, seeds), folder))
        finally:
            if not keep:
                shutil.rmtree(folder, ignore_errors=True)
    return tally


def _judge(tally: Tally, kind: str, number: int, case: Case, folder: Path) -> Iterator[Broken]:
    before = {path: path.read_bytes() for path in case.kept}
    tally.cases[kind] += 1
    for command in case.commands:
        with _environment(case.environment):
            outcome = execute(command[0], command[1:], folder)
        tally.codes[kind, outcome.code] += 1
        tally.interrupted[kind] += outcome.interrupted
        broken = faults(outcome, case.foreign)
        broken += [f"{path.name} was changed" for path, data in before.items() if path.read_bytes() != data]
        if broken:
            yield Broken(kind, number, command, tuple(broken), outcome.err[-1500:])


class _environment:  # noqa: N801 - used like a function
    """Variables for the commands in here; an empty value: without it."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values, self.before = values, dict(os.environ)

    def __enter__(self) -> None:
        for name, value in self.values.items():
            os.environ.pop(name, None)
            if value:
                os.environ[name] = value
        tempfile.tempdir = None

    def __exit__(self, *_: object) -> None:
        os.environ.clear()
        os.environ.update(self.before)


def _load() -> None:
    """What the commands load, once for all of them."""
    import quiet.cli.app  # noqa: F401


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--cases", type=int, default=1 << 40)
    parser.add_argument("--seed", type=int, default=None, help="of all draws (the time)")
    parser.add_argument("--first", type=int, default=0, help="begin with this case")
    parser.add_argument("--only", default="", choices=["", *(make.__name__ for make in KINDS)])
    parser.add_argument("--keep", action="store_true", help="keep the cases' directories")
    given = parser.parse_args()
    seed = int(time.time()) if given.seed is None else given.seed
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="fuzz-seeds-"))
    try:
        seeds = Seeds(folder / "seeds")
        numbers = iter(range(given.first, given.first + given.cases))
        tally = run(seeds, seed, numbers, time.monotonic() + given.seconds, given.only, given.keep)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report(tally, seed)
    return 1 if tally.broken else 0


def report(tally: Tally, seed: int) -> None:
    """The cases that broke rules, and the counts."""
    for each in tally.broken:
        print(f"{each.kind} {each.number}: {'; '.join(each.faults)}\n  {' '.join(each.command)[:300]!r}")
        print("    " + ascii(each.err[-600:]).replace("\\n", "\n    "))
    print(f"seed {seed}\n{'kind':12} {'cases':>7} {'broken':>7} {'Ctrl-C':>7}  exit codes")
    for kind, cases in sorted(tally.cases.items()):
        broken = len({each.number for each in tally.broken if each.kind == kind})
        codes = ", ".join(f"{code}: {n}" for (k, code), n in sorted(tally.codes.items()) if k == kind)
        print(f"{kind:12} {cases:7,} {broken:7,} {tally.interrupted[kind]:7,}  {codes}")
    print(f"{'all':12} {tally.cases.total():7,} {len({e.number for e in tally.broken}):7,}")


if __name__ == "__main__":
    sys.exit(main())
