"""Simulated cores with chains around trials: the frequency moves, others interrupt or share the core."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field

from cbench.model import CALIBRATED_UNIT, Calibration, ChainTimes, Counter, Trial
from cbench.stats import chains

CYCLES, LENGTH, STEP, EDGE = 240_000, 144_000, 25, 62.0
ALONE, BESIDE = 17 / 64, 0.49
CALIBRATION = Calibration(STEP, EDGE, LENGTH, "x86_64", 0.754)
COUNTER = Counter("calibrated-cycles", CALIBRATED_UNIT, True, "", quantum=34, calibration=CALIBRATION)


@dataclass
class Core:
    """A simulated core and its clock. `rate`: ticks per cycle at a moment in cycles. Each stretch of work of so many
    cycles is interrupted with probability `interrupted` a million cycles, for 5,000 to 500,000 ticks.

    `shared`: from which moments to which another thread runs on it; then work takes `slowdown` times as many cycles.
    """

    rate: Callable[[float], float] = lambda _now: 0.754
    interrupted: float = 0.1
    shared: Callable[[float], bool] = lambda _now: False
    slowdown: float = 1.24
    random: random.Random = field(default_factory=lambda: random.Random(1))
    now: float = 0.0
    ticks: float = 0.0

    def take(self, cycles: float) -> int:
        """The ticks of a stretch of work, as the clock shows them."""
        phase = self.random.random() * STEP
        begin = self.ticks + phase
        self.ticks += EDGE
        left = cycles
        while left > 0:
            part = min(left, 50_000)
            self.ticks += part * self.rate(self.now)
            self.now += part
            left -= part
            if self.random.random() < self.interrupted * part / 1e6:
                pause = self.random.uniform(5_000, 500_000)
                self.ticks += pause
                self.now += pause / 0.754
        return int((self.ticks + phase) // STEP * STEP - begin // STEP * STEP)

    def trial(self, cycles: float) -> ChainTimes:
        self.take(400_000)
        beside = self.shared(self.now)
        wide = LENGTH * (BESIDE if beside else ALONE)
        wide_before, before = self.take(wide), self.take(LENGTH * (1.006 if beside else 1))
        ticks = self.take(cycles * (self.slowdown if self.shared(self.now) else 1))
        beside = self.shared(self.now)
        after = self.take(LENGTH * (1.006 if beside else 1))
        wide = LENGTH * (BESIDE if beside else ALONE)
        return ChainTimes(ticks, LENGTH, before, after, wide_before, self.take(wide))


def trials(core: Core, count: int = 200, cycles: float = CYCLES, calibration: Calibration = CALIBRATION) -> list[Trial]:
    """As the worker and the runner make them."""
    timed = [core.trial(cycles) for _ in range(count)]
    made = [Trial(round(chains.cycles(each, calibration)), 7, chains=each) for each in timed]
    return chains.marked(made, calibration)
