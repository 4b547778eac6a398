"""Simulated blocks: the stopping rule, the orders and the analysis of `cbench ab` on values that are drawn."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log1p, sqrt

from cbench.ab.analyze import BlockAnalysis, analyze, detectable
from cbench.ab.design import StoppingRule, order_of

Draw = Callable[[random.Random], float]


def normal(draw: random.Random) -> float:
    """Noise of 1 %."""
    return draw.gauss(0, 0.01)


def heavy_tailed(draw: random.Random) -> float:
    """Student's t with 2 degrees of freedom, scaled to half a percent: it has no variance."""
    return 0.005 * draw.gauss(0, 1) / sqrt(draw.gammavariate(1, 1))


def skewed(draw: random.Random) -> float:
    """Lognormal: interruptions only make a run longer."""
    return 0.005 * draw.lognormvariate(0, 1)


@dataclass(frozen=True)
class Simulated:
    """A comparison; effects are log ratios. A block takes a second of the budget.

    b: of arm 2. copy: of A'. drift: of the host, from run to run. second: at the second position. after_b: after arm 2.
    blocks: a fixed number. layouts: builds of each arm, and layout: the standard deviation of their times.
    """

    noise: Draw = normal
    b: float = 0.0
    copy: float = 0.0
    arms: int = 3
    drift: float = 0.0
    second: float = 0.0
    after_b: float = 0.0
    blocks: int | None = None
    budget: float = 200.0
    effect: float = log1p(0.01)
    layouts: int = 1
    layout: float = 0.0

    def analysis(self, number: int) -> BlockAnalysis:
        """Of the comparison with this number; the same number, the same values."""
        draw = random.Random(f"ab {number}")
        rule = StoppingRule(
            arms=self.arms,
            effect=self.effect,
            budget_s=self.budget,
            strict=False,
            blocks=self.blocks,
            layouts=self.layouts,
        )
        builds = [[draw.gauss(0, self.layout) for _ in range(self.arms)] for _ in range(self.layouts)]
        for build in builds:
            build[1] = build[0]  # A' is a copy of A
        times: list[list[float]] = []
        orders: list[tuple[int, ...]] = []
        host, look = 0.0, rule.first_look
        while not times or not rule.over(len(times), float(len(times))):
            if len(times) == look:
                look = rule.next_look(look)
                if rule.enough(detectable(times, orders, layouts=self.layouts)):
                    break
            order = order_of(len(times), self.arms, number)
            row = [0.0] * self.arms
            for place, arm in enumerate(order):
                host += draw.gauss(0, self.drift)
                value = host + self.noise(draw) + (0.0, self.copy, self.b)[arm] if arm < 3 else host + self.noise(draw)
                value += self.second * (place == 1) + self.after_b * (place > 0 and order[place - 1] == 2)
                value += builds[len(times) % self.layouts][arm]
                row[arm] = exp(value)
            times.append(row)
            orders.append(order)
        return analyze(times, orders, layouts=self.layouts)
