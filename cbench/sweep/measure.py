"""A workload over working sets and numbers of accesses, as in the thesis's figure 4-3 and table 4.1.

Source: D. Kozak, "Chasing Zero Variability in Software Performance", MIT, chapter 4.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from cbench.measure import measurement
from cbench.measure.options import MeasureOptions, measure_options
from cbench.model import Result, Workload
from cbench.sweep.sizes import binary
from cbench.workloads import registry
from quiet import Clock, QuietError, UsageError, moment

SIZE, ACCESSES = "size", "n"
ABLE = ("memory", "chase")
PROBE_TRIALS = 3
WARMUP_GUESS = 30
"""Trials that warm-up takes, for the estimate of the time alone."""

Show = Callable[[str, int, int], None]
Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One working set (bytes) with one number of accesses; `failed` says why there is no result."""

    size: int
    accesses: int
    result: Result | None = None
    failed: str = ""

    @property
    def name(self) -> str:
        return f"{binary(self.size)}, {self.accesses:,} accesses"


@dataclass(frozen=True, slots=True)
class CellTiming:
    """What a cell takes, by two that were timed: start-up (s), filling (s/byte), an access in cache and outside (s)."""

    startup: float
    fill: float
    near: float
    far: float
    cached: int

    def seconds(self, size: int, accesses: int, calls: float) -> float:
        each = self.near if size <= self.cached else self.far
        return self.startup + self.fill * size + calls * accesses * each


@dataclass(frozen=True, slots=True)
class Sweep:
    """What is to be measured; `cached` is the size of the last-level cache in bytes, 0 where unknown."""

    workload: Workload
    sizes: tuple[int, ...]
    accesses: tuple[int, ...]
    cpu: int
    isolated: frozenset[int]
    options: MeasureOptions
    seed: int
    cached: int = 0
    grid: tuple[tuple[int, int], ...] = field(init=False)

    def __post_init__(self) -> None:
        cells = [(size, accesses) for size in self.sizes for accesses in self.accesses]
        # what drifts while the sweep goes on must not look like an effect of the size
        random.Random(self.seed).shuffle(cells)
        object.__setattr__(self, "grid", tuple(cells))


def find(name: str) -> Workload:
    """A workload whose rounds are accesses to a working set; UsageError for others."""
    workload = registry.find(name)
    if name not in ABLE:
        able = [known.name for known in registry.WORKLOADS if known.name in ABLE]
        raise UsageError(f"--workload {name}: its rounds are no memory accesses; use {', '.join(able)}")
    return workload


def run(sweep: Sweep, show: Show, tell: Tell) -> list[SweepCell]:
    """Every cell in the sweep's random order. A cell that fails is kept with its reason unless it is the first."""
    pace = _pace(sweep, show)
    calls = (sweep.options.trials + WARMUP_GUESS) * (1 + 1 / sweep.workload.rewarm_share)
    expected = [pace.seconds(size, accesses, calls) for size, accesses in sweep.grid]
    tell(f"{_many(len(sweep.grid), 'cell')} of {_many(sweep.options.trials, 'trial')}: about {duration(sum(expected))}")
    begun = time.monotonic()
    cells: list[SweepCell] = []
    for number, (size, accesses) in enumerate(sweep.grid):
        done, rest = sum(expected[:number]), sum(expected[number:])
        left = rest * (time.monotonic() - begun) / done if done else rest
        title = f"{SweepCell(size, accesses).name}: {number + 1} of {len(expected)}, about {duration(left)} left"

        def progress(_text: str, trials: int, wanted: int, before: int = number, title: str = title) -> None:
            show(title, before * wanted + trials, len(expected) * wanted)

        try:
            cells.append(SweepCell(size, accesses, _measure(sweep, size, accesses, sweep.options, progress)))
        except QuietError as error:
            if not cells:
                raise
            cells.append(SweepCell(size, accesses, failed=str(error)))
            tell(f"{SweepCell(size, accesses).name}: {error}")
    return cells


def _measure(sweep: Sweep, size: int, accesses: int, options: MeasureOptions, show: Show) -> Result:
    params = registry.parameters(sweep.workload, {SIZE: size, ACCESSES: accesses}, False)
    found = measurement.measure(
        [sweep.workload], [params], [sweep.cpu], isolated=sweep.isolated, options=options, show=show
    )
    return found[0]


def _pace(sweep: Sweep, show: Show) -> CellTiming:
    options = measure_options(PROBE_TRIALS, "0", sweep.options.counter, sweep.options.timeout, False)
    probes = ((min(sweep.sizes), min(sweep.accesses)), (max(sweep.sizes), max(sweep.accesses)))
    first, walls, ticks = moment(), [], []
    for size, accesses in probes:
        begun = time.monotonic()
        result = _measure(sweep, size, accesses, options, lambda *_: show("timing two cells", 0, 1))
        walls.append(time.monotonic() - begun)
        ticks.append(median(trial.end - trial.begin for trial in result.session.trials))
    per_second = Clock(first, moment()).per_second
    near, far = (each / per_second / accesses for each, (_, accesses) in zip(ticks, probes, strict=True))
    calls = PROBE_TRIALS * (1 + 1 / sweep.workload.rewarm_share)
    fill = max(walls[1] - walls[0] - calls * ticks[1] / per_second, 0) / max(sweep.sizes)
    return CellTiming(walls[0], fill, near, max(near, far), sweep.cached)


def duration(seconds: float) -> str:
    """A rough time in words: "40 s", "3 min"."""
    return f"{max(round(seconds), 1)} s" if seconds < 100 else f"{round(seconds / 60)} min"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
