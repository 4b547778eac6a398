"""Simulated gates: sessions of a suite whose values are drawn, judged as `cbench gate` judges them."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log1p

from cbench.ab.analyze import detectable
from cbench.ab.design import StoppingRule, order_of
from cbench.gate.judge import SUSPECTED, judge
from cbench.gate.measure import GateSession, SessionTest
from cbench.gate.rule import GateRule

Draw = Callable[[random.Random], float]
SLOWED = 7
"""The number of the one test that may be slower in new."""
RULE = GateRule(0.01)


def normal(draw: random.Random) -> float:
    """Noise of half a percent."""
    return draw.gauss(0, 0.005)


@dataclass(frozen=True)
class SimulatedGate:
    """Effects are log ratios. slower: of test 7 in new. drift: of the host, from block to block. second: at the second
    position. blocks: a fixed number, None: until the threshold can be found in all tests, or 200 blocks. layouts: the
    number of builds of each arm; layout: their standard deviation.
    """

    noise: Draw = normal
    slower: float = 0.0
    drift: float = 0.001
    second: float = 0.0
    unit: str = "ns"
    tests: int = 20
    blocks: int | None = None
    rule: GateRule = RULE
    layout: float = 0.0
    layouts: int = 1

    def session(self, seed: int, names: frozenset[str] | None = None) -> GateSession:
        """The same seed, the same values."""
        draw = random.Random(seed)
        effect = log1p(self.rule.threshold)
        rule = StoppingRule(arms=3, effect=effect, budget_s=200, strict=False, blocks=self.blocks, layouts=self.layouts)
        values: list[list[tuple[float, ...]]] = [[] for _ in range(self.tests)]
        orders: list[tuple[int, ...]] = []
        every = range(self.layouts) if self.layout else ()
        builds = [[(draw.gauss(0, self.layout), draw.gauss(0, self.layout)) for _ in every] for _ in range(self.tests)]
        look = rule.first_look
        while not orders or not rule.over(len(orders), float(len(orders))):
            if len(orders) == look:
                look = rule.next_look(look)
                mine = [test for test in range(self.tests) if names is None or f"test {test}" in names]
                alpha = self.rule.alpha(len(mine), again=names is not None)
                power, layouts = self.rule.power, self.layouts
                if all(rule.enough(detectable(values[test], orders, alpha, power, layouts)) for test in mine):
                    break
            orders.append(order_of(len(orders), 3, seed))
            for test in range(self.tests):
                shift = builds[test][(len(orders) - 1) % self.layouts] if self.layout else (0.0, 0.0)
                values[test].append(self._row(test, orders, draw, shift))
        tests = [SessionTest(f"test {at}", self.unit, tuple(rows)) for at, rows in enumerate(values)]
        return GateSession(tuple(tests), tuple(orders), {}, (), (), "", "blocks", 1.0, layouts=self.layouts)

    def _row(
        self, test: int, orders: list[tuple[int, ...]], draw: random.Random, builds: tuple[float, float]
    ) -> tuple[float, ...]:
        row = [0.0] * 3
        for position, arm in enumerate(orders[-1]):
            level = self.drift * len(orders) + self.second * (position == 1) + self.noise(draw) + builds[arm == 2]
            value = 1000 * exp(level + self.slower * (arm == 2 and test == SLOWED))
            row[arm] = 1e9 / value if self.unit == "ops/s" else value
        return tuple(row)

    def red(self, number: int) -> frozenset[str]:
        """The regressions of the gate with this number, after both sessions."""
        first = self.suspects(self.session(number))
        return self.suspects(self.session(number + 1_000_000, first), first) if first else first

    def suspects(self, session: GateSession, before: frozenset[str] | None = None) -> frozenset[str]:
        """The suspects of one session."""
        found = judge(session, self.rule, before)
        return frozenset(test.name for test in found if test.outcome == SUSPECTED)
