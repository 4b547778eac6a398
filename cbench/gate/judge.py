"""Judge which tests of a gate are regressions, from the statistics of its sessions.

Two sessions limit the error rate for any number of tests. The first session screens each test individually at ALPHA.
Suspect tests are measured again, by new runs with new orders, and are regressions if the second session confirms them,
with all suspects together at ALPHA (Bonferroni). The second session's data are independent of the selection of its
tests, so the chance of any false regression is at most ALPHA.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import ceil, exp, expm1, log1p

from cbench.ab.analyze import FASTER, SLOWER, TOO_FEW, analyze
from cbench.ab.design import BUDGET
from cbench.ab.stats import fewest
from cbench.compare.suite import CANNOT_TELL, more_is_better
from cbench.gate.measure import GateSession, SessionTest
from cbench.gate.rule import GateRule, together

REGRESSION, SUSPECTED, NOT_CONFIRMED = "regression", "suspected", "not confirmed"
IMPROVEMENT, PASSED, CANNOT_JUDGE = "improvement", "passed", "cannot judge"
JUDGED = (IMPROVEMENT, PASSED, NOT_CONFIRMED)
"""The outcomes of tests that rule out a regression, or would have detected one as large as the threshold."""
NEW_ARM = 0  # index of new in BlockAnalysis.arms, which excludes old and its copy


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """The judgment of one test, new against old, by the last session that measured it.

    `delta_pct`: the change of the value from old to new, in %, None if one of the programs has the value 0;
    `interval_pct`: the interval of `delta_pct`, None if `delta_pct` is None or if there are too few blocks for the
    level. `floor_pct`: how much old may differ from its own copy, in %. `detectable_pct`: the smallest slowdown that
    these blocks would have shown with the rule's probability, None if unknown. `layouts`: the number of measured
    builds. `higher_is_better`: whether a lower value is worse; its slowdown is the rise of its reciprocal. `session`: 1
    or 2. `why`: the reason why the test cannot be judged, or how new differs from old if one of them has the value 0;
    else "".
    """

    name: str
    unit: str
    outcome: str
    delta_pct: float | None
    interval_pct: tuple[float, float] | None
    level: float
    floor_pct: float
    detectable_pct: float | None
    blocks: int
    layouts: int
    session: int
    why: str = ""
    higher_is_better: bool = False

    @property
    def worse_pct(self) -> float:
        """`delta_pct`, with the sign of a slowdown."""
        return (self.delta_pct or 0) * (-1 if self.higher_is_better else 1)


def judge(session: GateSession, rule: GateRule, suspects: Collection[str] | None = None) -> list[JudgedTest]:
    """Judge the tests of the first session, or only the `suspects` in the second. The combined error rate of
    improvements is ALPHA.
    """
    mine = [test for test in session.tests if suspects is None or test.name in suspects]
    return [_judged(test, session, rule, len(mine), suspects is not None) for test in mine]


def _judged(
    test: SessionTest,
    session: GateSession,
    rule: GateRule,
    tests: int,
    again: bool,
) -> JudgedTest:
    rate = more_is_better(test.unit, rule.better)
    values = [[1 / value for value in row] for row in test.values] if rate else test.values
    orders, layouts = session.orders, session.layouts
    analysis = analyze(values, orders, rule.alpha(tests, again), rule.power, layouts)
    arm = analysis.arms[NEW_ARM]
    sign = -1 if rate else 1  # the change of a rate is that of its inverse, with the other sign
    # A slowdown within the difference between old and its copy is not detected, however narrow the intervals are.
    smallest = max(analysis.detectable.effect, analysis.floor) if analysis.detectable else None
    ends = sign * arm.shift.low, sign * arm.shift.high
    limit, why = log1p(rule.threshold), ""
    if arm.outcome == TOO_FEW:
        outcome, why = CANNOT_JUDGE, _too_few(analysis.blocks, session, fewest(rule.alpha(tests, again)))
    elif arm.outcome == SLOWER and arm.shift.high >= limit:
        outcome = SUSPECTED
    elif (
        arm.outcome == FASTER
        and analyze(values, orders, together(tests), layouts=layouts).arms[NEW_ARM].outcome == FASTER
    ):
        outcome = IMPROVEMENT
    else:
        found = smallest is not None and smallest <= limit
        outcome = PASSED if found or arm.shift.high < limit else CANNOT_TELL
    return JudgedTest(
        name=test.name,
        unit=test.unit,
        outcome=outcome,
        delta_pct=None if test.from_zero else 100 * expm1(sign * arm.shift.value),
        interval_pct=(
            (100 * expm1(min(ends)), 100 * expm1(max(ends))) if arm.shift.attained and not test.from_zero else None
        ),
        level=arm.shift.level,
        floor_pct=100 * expm1(analysis.floor),
        detectable_pct=None if smallest is None else 100 * (exp(smallest) - 1),
        blocks=analysis.blocks,
        layouts=layouts,
        session=2 if again else 1,
        why=why or test.from_zero,
        higher_is_better=rate,
    )


def _too_few(blocks: int, session: GateSession, needed: int) -> str:
    if session.layouts > 1 and (blocks > session.layouts or session.ended != BUDGET):
        return f"{session.layouts} layouts are too few; raise layouts to at least {needed}"
    few = f"{blocks} of at least {needed} blocks"
    if session.ended != BUDGET:
        return f"{few}; raise blocks"
    return f"{few}; raise budget_s to at least {ceil(1.2 * needed * session.seconds / max(blocks, 1)):,}"
