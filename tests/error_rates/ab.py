"""Error rates and power of `cbench ab`: simulated blocks, from the orders to the outcomes, without the commands."""

from __future__ import annotations

from collections.abc import Callable
from math import log1p
from pathlib import Path

from cbench.ab.analyze import FASTER, SLOWER, WITHIN_FLOOR, BlockAnalysis
from tests.cbench.ab.simulated import Simulated, heavy_tailed, skewed
from tests.error_rates.rate import Rate, Study

ONE = log1p(0.01)


def study(simulated: Simulated, said: Callable[[BlockAnalysis], bool]) -> Study:
    """A study that analyzes one simulated comparison and judges it by `said`."""

    def one(number: int, folder: Path) -> bool:
        return said(simulated.analysis(number))

    return one


def claims(analysis: BlockAnalysis) -> bool:
    """Whether any arm is called faster or slower."""
    return any(each.outcome in (FASTER, SLOWER) for each in analysis.arms)


def unlike_a(analysis: BlockAnalysis) -> bool:
    """Whether the interval of any arm, without the floor, excludes A."""
    return claims(analysis) or any(each.outcome == WITHIN_FLOOR for each in analysis.arms)


def slower(analysis: BlockAnalysis) -> bool:
    """Whether arm 2 is called slower."""
    return analysis.arms[0].outcome == SLOWER


def order_named(analysis: BlockAnalysis) -> bool:
    """Whether any effect of position or predecessor is named."""
    return any(each is not None and each.named for each in (analysis.position, analysis.predecessor))


def second_named(analysis: BlockAnalysis) -> bool:
    """Whether the second position is named."""
    return analysis.position is not None and analysis.position.named and analysis.position.at == 1


def follower_named(analysis: BlockAnalysis) -> bool:
    """Whether the effect on the runs after arm 2 is named."""
    return analysis.predecessor is not None and analysis.predecessor.named and analysis.predecessor.at == 2


NULL = "`cbench ab`: any arm reported as faster or slower although all are the same program"
INTERVAL = "`cbench ab`: the interval of any arm excludes 0 although all are the same program"
ORDER = "`cbench ab`: position and predecessor"
POWER = "`cbench ab`: detected differences of 1 % at a noise of 1 % per run"

ALIKE: dict[str, Simulated] = {
    "until 1 % can be detected": Simulated(),
    "12 blocks": Simulated(blocks=12),
    "until 1 % can be detected, 4 other arms": Simulated(arms=6, budget=100),
    "heavy tails (Student's t, 2 degrees of freedom)": Simulated(noise=heavy_tailed),
    "skewed (lognormal)": Simulated(noise=skewed),
    "the host drifts by 1 % from run to run": Simulated(drift=0.01),
    "the second position is 3 % slower": Simulated(second=0.03),
    "6 layouts that differ by 3 %, 60 blocks": Simulated(layouts=6, layout=0.03, blocks=60),
    "12 layouts that differ by 3 %, one block each": Simulated(layouts=12, layout=0.03, blocks=12),
}

RATES: tuple[Rate, ...] = (
    *(Rate(NULL, name, study(each, claims), 0, 5) for name, each in ALIKE.items()),
    Rate(NULL, "runs after one arm are 3 % slower", study(Simulated(after_b=0.03), claims), 0, 5),
    Rate(NULL, "A' and the other arm are 2 % slower than A", study(Simulated(b=0.02, copy=0.02), claims), 0, 5),
    *(Rate(INTERVAL, name, study(each, unlike_a), 0, 6) for name, each in ALIKE.items()),
    Rate(
        ORDER, "any effect reported although there is none, 24 blocks", study(Simulated(blocks=24), order_named), 0, 5
    ),
    Rate(
        ORDER, "the second position is 3 % slower: reported", study(Simulated(second=0.03, blocks=24), second_named), 95
    ),
    Rate(
        ORDER,
        "runs after one arm are 3 % slower: reported",
        study(Simulated(after_b=0.03, blocks=48), follower_named),
        95,
    ),
    Rate(POWER, "2 arms", study(Simulated(b=ONE), slower), 75),
    Rate(POWER, "2 arms, the second position is 3 % slower", study(Simulated(b=ONE, second=0.03), slower), 75),
    Rate(POWER, "5 arms", study(Simulated(b=ONE, arms=6), slower), 75),
)
