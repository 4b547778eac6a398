"""Analyze the times of arms in blocks. Arm 0 is A; arm 1 is A', a copy of the same program.

Arms are compared by the logarithms of their times within blocks, so a slowdown of a whole block cancels. If two arms
are the same program, the random order within each block makes a difference and its opposite equally likely, for any
drift of the host and any noise: the level of the interval follows from the design, not from a model (R. A. Fisher, The
Design of Experiments, 1935, section 21).

An arm differs from A if its whole interval is beyond the floor, which is the largest difference in the interval of A'
against A. Positions and predecessors are tested by ranks within blocks, with a separate alpha. If positions matter,
their median effects are subtracted before arms are compared: the Williams squares give each arm every position equally
often, so this removes noise without shifting estimates. An arm that affects its successor never runs after itself in a
block, so a significant effect of a predecessor may look like a difference between arms: the floor is then raised to the
size of this effect.

If each block measures one of several builds of every arm, blocks of one build share its layout, so their differences
are not independent. The unit is then the layout, represented by the Hodges-Lehmann center of its blocks' differences.
Of two layouts of the same program, drawn from the same distribution, the first is as likely to be faster as slower, so
the level holds over layouts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import expm1, log, sqrt
from statistics import NormalDist, fmean, median

from cbench.ab.stats import Shift, center, fewest, ranked, shift
from cbench.stats.distributions import chi2_sf, student_p

ALPHA = 0.05
"""The combined error rate of all comparisons with A."""
FLOOR_ALPHA = 0.1
"""The error rate of the two-sided interval of A' against A; half of it is the probability that the floor is too low."""
ORDER_ALPHA = 0.05
"""The combined error rate of the tests of positions and predecessors."""
POWER = 0.8
POLISHED = 5
"""Rounds after which the effects of predecessors have converged."""
FASTER, SLOWER = "faster", "slower"
WITHIN_FLOOR, NOTHING, TOO_FEW = "within the floor", "no difference shown", "too few blocks"

Rows = Sequence[Sequence[float]]
"""Times or their logarithms: a row for each block, a number for each arm."""
Orders = Sequence[Sequence[int]]
"""A row for each block: the arms in the order in which they ran."""


@dataclass(frozen=True, slots=True)
class ArmShift:
    """The shift of one arm against A, as the logarithm of the ratio of their times. `arm`: the arm's number (from 0);
    `outcome`: faster, slower, within the floor, no difference shown, or too few blocks.
    """

    arm: int
    shift: Shift
    outcome: str


@dataclass(frozen=True, slots=True)
class OrderShift:
    """The largest effect of a position or of a predecessor. `at`: the position (from 0) or the preceding arm; `shift`:
    the effect as a log ratio.

    `p`: p-value for any effect of positions or predecessors; `named`: whether an effect is claimed at `alpha`.
    """

    at: int
    shift: float
    p: float
    alpha: float

    @property
    def named(self) -> bool:
        """Whether the p-value is low enough to claim an effect."""
        return self.p <= self.alpha


@dataclass(frozen=True, slots=True)
class SmallestEffect:
    """The smallest detectable effect. `effect`: the log ratio that this number of `units` (blocks or layouts) detects
    with a given probability.
    """

    effect: float
    units: int

    def units_for(self, wanted: float) -> int:
        """The number of units that would detect the log ratio `wanted`: widths shrink with the square root of the
        number of units.
        """
        return max(self.units + 1, round(self.units * (self.effect / wanted) ** 2))


@dataclass(frozen=True, slots=True)
class BlockAnalysis:
    """The result of analyze().

    `floor`: the log ratio by which A may differ from itself; `copy`: A' against A; `arms`: the other arms against A.
    `layouts`: number of layouts per arm, 1 if builds do not vary. `detectable`, `position` and `predecessor`: None if
    there are too few blocks or, for `detectable`, too few layouts.
    """

    blocks: int
    layouts: int
    copy: Shift
    floor: float
    arms: tuple[ArmShift, ...]
    detectable: SmallestEffect | None
    position: OrderShift | None
    predecessor: OrderShift | None

    @property
    def units(self) -> int:
        """The number of independent differences: layouts, or blocks if builds do not vary."""
        return self.layouts if self.layouts > 1 else self.blocks

    @property
    def unlike_itself(self) -> float:
        """The smallest absolute log ratio in the interval of A' against A; more blocks do not lower the floor below
        this value.
        """
        return max(0.0, self.copy.low, -self.copy.high)

    @property
    def raised(self) -> bool:
        """Whether the floor is the effect of a predecessor, which exceeds the difference between A' and A."""
        return self.floor > max(abs(self.copy.low), abs(self.copy.high))


def analyze(times: Rows, orders: Orders, alpha: float = ALPHA, power: float = POWER, layouts: int = 1) -> BlockAnalysis:
    """Analyze the times of at least one block of three or more arms. Raises ValueError if a time is not positive.

    `alpha`: the error rate of all comparisons together. `power`: the probability of showing the detectable effect;
    `layouts`: the number of builds that the blocks use in turn.
    """
    level, position = _without_position(times, orders)
    copy = against(level, 1, FLOOR_ALPHA, layouts)
    predecessor = predecessor_effect(level, orders)
    carried = abs(predecessor.shift) if predecessor and predecessor.named else 0.0
    floor = max(abs(copy.low), abs(copy.high), carried)
    shifts = _shifts(level, alpha, layouts)
    return BlockAnalysis(
        blocks=len(level),
        layouts=min(layouts, len(level)),
        copy=copy,
        floor=floor,
        arms=tuple(ArmShift(arm, each, _outcome(each, floor, copy)) for arm, each in enumerate(shifts, 2)),
        detectable=_detectable(shifts, copy, _units(level, layouts), power),
        position=position,
        predecessor=predecessor,
    )


def detectable(
    times: Rows, orders: Orders, alpha: float = ALPHA, power: float = POWER, layouts: int = 1
) -> SmallestEffect | None:
    """The smallest detectable effect, from the widths of the intervals alone; None if there are too few blocks or
    layouts for intervals.
    """
    level, _ = _without_position(times, orders)
    copy = against(level, 1, FLOOR_ALPHA, layouts)
    return _detectable(_shifts(level, alpha, layouts), copy, _units(level, layouts), power)


def fewest_layouts(arms: int) -> int:
    """The smallest number of layouts that can show a difference between any arm and A; `arms` includes A and A'."""
    return max(fewest(FLOOR_ALPHA), fewest(_each(ALPHA, arms)))


def _without_position(times: Rows, orders: Orders) -> tuple[list[list[float]], OrderShift | None]:
    """The logarithms of the times, with the median effect of each position subtracted if positions matter; and the
    result of the test of positions, None if there are too few blocks.
    """
    logs = [[log(value) for value in row] for row in times]
    residuals = _residuals(logs)
    position = position_effect(residuals, orders)
    if position and position.named:
        places = range(len(logs[0]))
        effects = [median(row[order[at]] for row, order in zip(residuals, orders, strict=True)) for at in places]
        for row, order in zip(logs, orders, strict=True):
            for at, arm in enumerate(order):
                row[arm] -= effects[at]
    return logs, position


def _too_few(rows: Rows) -> bool:
    """Whether there are too few blocks to test order effects: such tests would have no power and no known
    distribution.
    """
    return len(rows) < 2 * len(rows[0])


def against(logs: Rows, arm: int, alpha: float, layouts: int = 1) -> Shift:
    """The shift of an arm against A within blocks, or within layouts if there are several."""
    differences = [row[arm] - row[0] for row in logs]
    if layouts > 1:
        differences = [center(differences[number::layouts]) for number in range(_units(logs, layouts))]
    return shift(differences, alpha)


def _units(logs: Rows, layouts: int) -> int:
    """The number of independent differences."""
    return min(layouts, len(logs)) if layouts > 1 else len(logs)


def _shifts(logs: Rows, alpha: float, layouts: int) -> list[Shift]:
    """The shift of every other arm against A, with simultaneous intervals at the level 1 - `alpha`."""
    arms = len(logs[0])
    return [against(logs, arm, _each(alpha, arms), layouts) for arm in range(2, arms)]


def _each(alpha: float, arms: int) -> float:
    """The error rate of each comparison with A (Bonferroni)."""
    return alpha / (arms - 2)


def _outcome(each: Shift, floor: float, copy: Shift) -> str:
    if not each.attained or not copy.attained:
        return TOO_FEW
    if each.low > floor:
        return SLOWER
    if -expm1(each.high) > expm1(floor):  # compare as shares, because both are shown as shares
        return FASTER
    return WITHIN_FLOOR if each.low > 0 or each.high < 0 else NOTHING


def _detectable(shifts: Sequence[Shift], copy: Shift, units: int, power: float) -> SmallestEffect | None:
    """The smallest detectable effect; None without intervals. An effect is detected if its estimate minus half the
    width of its interval is above the floor. The floor is half the width of the interval of A', plus the distance of A'
    from A. If A and A' do not differ, this distance is sqrt(2/pi) standard errors on average.
    """
    if not copy.attained or not all(each.attained for each in shifts):
        return None
    quantile = NormalDist().inv_cdf
    widest = max(shifts, key=lambda each: each.half_width)
    error = widest.half_width / quantile((1 + widest.level) / 2)
    floor = copy.half_width * (1 + sqrt(0.6366) / quantile((1 + copy.level) / 2))
    return SmallestEffect(widest.half_width + floor + quantile(power) * error, units)


def _residuals(logs: Rows) -> list[list[float]]:
    """The residuals: each number minus the effects of its block and its arm."""
    means = [fmean(row) for row in logs]
    within = [[value - mean for value in row] for row, mean in zip(logs, means, strict=True)]
    centers = [median(column) for column in zip(*within, strict=True)]
    return [[value - center for value, center in zip(row, centers, strict=True)] for row in within]


def position_effect(residuals: Rows, orders: Orders) -> OrderShift | None:
    """Friedman's test over the positions of a block (M. Friedman, J. Amer. Statist. Assoc. 32 (1937) 675-701); None if
    there are fewer than twice as many blocks as arms, which is too few for the chi-squared approximation.
    """
    if _too_few(residuals):
        return None
    size = len(residuals[0])
    placed = [[row[arm] for arm in order] for row, order in zip(residuals, orders, strict=True)]
    sums = [0.0] * size
    spread = 0.0
    for row in placed:
        for place, rank in enumerate(ranked(row)):
            away = rank - (size + 1) / 2
            sums[place] += away
            spread += away * away
    statistic = (size - 1) * sum(each * each for each in sums) / spread if spread else 0.0
    shifts = [_away(placed, place) for place in range(size)]
    at = max(range(size), key=lambda place: abs(shifts[place]))
    return OrderShift(at, shifts[at], chi2_sf(statistic, size - 1), ORDER_ALPHA / 2)


def _away(placed: Rows, at: int) -> float:
    """The median of the values at one position minus the median of the values at all other positions."""
    return median(row[at] for row in placed) - median(
        value for row in placed for place, value in enumerate(row) if place != at
    )


def predecessor_effect(logs: Rows, orders: Orders) -> OrderShift | None:
    """Test whether the runs right after some arm deviate from the other runs of their block. Returns None under the
    same condition as position_effect().

    `logs`: logarithms of times, without the effect of positions. In each block, the random order draws an arm's
    successor from all other arms, so the sum of the successors' ranks has the mean and the variance of such draws. p is
    from Student's t distribution, with Bonferroni's correction for all arms.
    """
    if _too_few(logs):
        return None
    size, blocks = len(logs[0]), len(logs)
    sums, variances = [0.0] * size, [0.0] * size
    for row, order in zip(_residuals(logs), orders, strict=True):
        ranks = ranked(row)
        for arm, follower in pairwise(order):
            others = [rank for each, rank in enumerate(ranks) if each != arm]
            mean = fmean(others)
            sums[arm] += ranks[follower] - mean
            variances[arm] += fmean((rank - mean) ** 2 for rank in others)
    scores = [abs(total) / sqrt(var) if var else 0.0 for total, var in zip(sums, variances, strict=True)]
    at = max(range(size), key=scores.__getitem__)
    carried = carried_over(logs, orders)
    away = carried[at] - fmean(carried[:at] + carried[at + 1 :])
    return OrderShift(at, away, min(1.0, size * student_p(scores[at], blocks - 1)), ORDER_ALPHA / 2)


def carried_over(logs: Rows, orders: Orders) -> list[float]:
    """The effect of each arm on the run after it. The effects of arm, position and predecessor are estimated in turn,
    each as medians of the residuals of the others (J. W. Tukey, Exploratory Data Analysis, 1977, chapter 11: median
    polish).
    """
    size = len(logs[0])
    left = [[row[arm] - fmean(row) for arm in order] for row, order in zip(logs, orders, strict=True)]
    carried = [0.0] * size
    for _ in range(POLISHED):
        for factor in ("arm", "position", "predecessor"):
            cells: dict[int, list[tuple[int, int]]] = {}
            for block, order in enumerate(orders):
                for place, arm in enumerate(order):
                    level = {"arm": arm, "position": place, "predecessor": order[place - 1] if place else -1}[factor]
                    cells.setdefault(level, []).append((block, place))
            for level, members in cells.items():
                if factor == "predecessor" and level < 0:
                    continue  # the first run of a block has no predecessor
                effect = median(left[block][place] for block, place in members)
                for block, place in members:
                    left[block][place] -= effect
                if factor == "predecessor":
                    carried[level] += effect
        left = [[value - fmean(row) for value in row] for row in left]
    return carried
