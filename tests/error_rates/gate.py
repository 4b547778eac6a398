"""Error rates and power of `cbench gate`: simulated suites of 20 tests, from the orders to the regressions."""

from __future__ import annotations

from pathlib import Path

from tests.cbench.ab.simulated import heavy_tailed, normal, skewed
from tests.cbench.gate.simulated import SLOWED, SimulatedGate
from tests.error_rates.rate import Rate, Study


def red(gate: SimulatedGate) -> Study:
    """Whether any test is called a regression."""

    def one(number: int, folder: Path) -> bool:
        return bool(gate.red(number))

    return one


def found(gate: SimulatedGate) -> Study:
    """Whether the slower test, and no other, is called a regression."""

    def one(number: int, folder: Path) -> bool:
        return gate.red(number) == {f"test {SLOWED}"}

    return one


NULL = "`cbench gate`: red although all 20 tests are the same code"
POWER = "`cbench gate`: red only for the one of 20 tests that is 1 % slower"

RATES: tuple[Rate, ...] = (
    Rate(NULL, "noise of 0.5 % per run", red(SimulatedGate()), 0, 5),
    Rate(NULL, "the host drifts by 1 % from block to block", red(SimulatedGate(drift=0.01)), 0, 5),
    Rate(NULL, "the second position is 3 % slower", red(SimulatedGate(second=0.03)), 0, 5),
    Rate(NULL, "noise of 1 % per run", red(SimulatedGate(noise=normal)), 0, 5),
    Rate(NULL, "heavy tails (Student's t, 2 degrees of freedom)", red(SimulatedGate(noise=heavy_tailed)), 0, 5),
    Rate(NULL, "skewed (lognormal)", red(SimulatedGate(noise=skewed)), 0, 5),
    Rate(
        NULL, "20 layouts of each revision, which differ by 1 %", red(SimulatedGate(layout=0.01, layouts=20)), 0, 5, 0.3
    ),
    Rate(POWER, "noise of 0.5 % per run", found(SimulatedGate(slower=0.01)), 80, 100, 0.3),
    Rate(POWER, "the second position is 3 % slower", found(SimulatedGate(slower=0.01, second=0.03)), 80, 100, 0.3),
    Rate(POWER, "noise of 1 % per run", found(SimulatedGate(slower=0.01, noise=normal)), 80, 100, 0.3),
)
