"""Define the result of a comparison as frozen values for `--json` and the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import exp, expm1, log1p

from cbench.ab.analyze import FASTER, SLOWER, TOO_FEW, BlockAnalysis, OrderShift
from cbench.ab.options import AbOptions
from cbench.ab.stats import Shift
from cbench.external.result import CommandResult, CommandsResult, MedianEstimate
from cbench.machine.describe import HostFacts
from cbench.measure.cause_counts import CauseCount
from cbench.model import Counter
from cbench.results import LEFT_OUT


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """The ratio of an arm's time to the baseline's, with an interval; the intervals of all arms hold simultaneously at
    95 %.

    `outcome`: faster, slower, within the floor, no difference shown, or too few blocks. `interval`: None if there are
    too few blocks; `level`: the level of this interval alone.
    """

    arm: str
    baseline: str
    ratio: float
    interval: tuple[float, float] | None
    level: float
    outcome: str


@dataclass(frozen=True, slots=True)
class NoiseFloor:
    """The ratio of the time of the baseline's copy to the baseline's time.

    `bound`: the share by which the same program may differ from itself here. `raised_by_predecessor`: the bound is the
    effect of the predecessor, because this effect exceeds the difference between the copy and the baseline. `why`: the
    reason why the baseline itself serves as its copy, "" if there is a copy. `interval`: None if there are too few
    blocks.
    """

    bound: float
    ratio: float
    interval: tuple[float, float] | None
    level: float
    copied: bool
    raised_by_predecessor: bool
    why: str = field(metadata={LEFT_OUT: ""})


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """The effect of a position in the block (from 1) or of a preceding arm. `ratio`: time relative to all other runs.

    `p`: p-value for any effect of positions or predecessors; `matters`: `p` is at most `alpha`.
    """

    at: int | str
    ratio: float
    p: float
    alpha: float
    matters: bool


@dataclass(frozen=True, slots=True)
class AbResult:
    """The whole result of `cbench ab`.

    `arms`: the baseline, its copy, then the other arms, in the format of `cbench run -- CMD`. `layouts`: measured
    builds per arm; `distinct_builds`: the number of different builds, byte for byte, of the arm with the fewest.
    `ended`: the reason why measuring ended: blocks, effect or budget. `detectable`: the share by which an arm would
    have to differ to be detected with probability 0.8. `blocks_needed`, or `layouts_needed` with the present number of
    blocks per layout, and `budget_needed_s`: the requirements for detecting `effect`; None if it is already detectable,
    or if more blocks would not help. With too few blocks, these figures, `detectable`, `position` and `predecessor` are
    None. Times are in ns unless the name gives another unit.
    """

    counter: Counter
    host: HostFacts
    spawn: MedianEstimate | None
    baseline: str
    blocks: int
    layouts: int
    distinct_builds: int
    seconds: float
    ended: str
    effect: float
    seed: int
    comparisons: tuple[ArmComparison, ...]
    floor: NoiseFloor
    position: OrderEffect | None
    predecessor: OrderEffect | None
    detectable: float | None
    blocks_needed: int | None
    layouts_needed: int | None
    budget_needed_s: int | None
    causes: tuple[CauseCount, ...]
    polluted: int
    arms: tuple[CommandResult, ...]

    @property
    def varied(self) -> bool:
        """Whether layouts vary, so that differences are computed over layouts."""
        return self.layouts > 1

    @property
    def undecided(self) -> bool:
        """Whether any arm has too few blocks to be compared."""
        return any(each.outcome == TOO_FEW for each in self.comparisons)

    @property
    def differs(self) -> bool:
        """Whether any arm is shown to be faster or slower."""
        return any(each.outcome in (FASTER, SLOWER) for each in self.comparisons)


def ab_result(
    measured: CommandsResult,
    options: AbOptions,
    analysis: BlockAnalysis,
    *,
    not_copied: str,
    distinct: int,
    ended: str,
    seconds: float,
) -> AbResult:
    """The result of a comparison, from its trials and its analysis. `distinct`: the number of different builds of the
    arm with the fewest; `seconds`: the duration of all blocks.
    """
    arms = tuple(replace(each, ratio=None) for each in measured.results)
    names = [each.workload for each in arms]
    needed = _needed(analysis, log1p(options.effect))
    varied = options.layouts > 1
    position, predecessor = analysis.position, analysis.predecessor
    return AbResult(
        counter=measured.counter,
        host=measured.host,
        spawn=measured.spawn,
        baseline=names[0],
        blocks=analysis.blocks,
        layouts=analysis.layouts,
        distinct_builds=distinct,
        seconds=seconds,
        ended=ended,
        effect=options.effect,
        seed=options.seed,
        comparisons=tuple(
            ArmComparison(names[each.arm], names[0], *_ratio(each.shift), each.outcome) for each in analysis.arms
        ),
        floor=NoiseFloor(
            expm1(analysis.floor),
            *_ratio(analysis.copy),
            copied=not not_copied,
            raised_by_predecessor=analysis.raised,
            why=not_copied,
        ),
        position=_order(position, position.at + 1) if position else None,
        predecessor=_order(predecessor, names[predecessor.at]) if predecessor else None,
        detectable=expm1(analysis.detectable.effect) if analysis.detectable else None,
        blocks_needed=None if varied else needed,
        layouts_needed=needed if varied else None,
        budget_needed_s=None if needed is None else _round_up(needed * seconds / analysis.units),
        causes=_causes(arms),
        polluted=sum(len(each.polluted) for each in arms),
        arms=arms,
    )


def _ratio(shift: Shift) -> tuple[float, tuple[float, float] | None, float]:
    return exp(shift.value), (exp(shift.low), exp(shift.high)) if shift.attained else None, shift.level


def _order(effect: OrderShift, at: int | str) -> OrderEffect:
    return OrderEffect(at, exp(effect.shift), effect.p, effect.alpha, effect.named)


def _needed(analysis: BlockAnalysis, effect: float) -> int | None:
    """The number of blocks, or of layouts, that would detect the effect. None if the current number already does or is
    too small for an estimate, if A differs from its copy by the effect or more, or if a predecessor raises the floor.
    """
    found = analysis.detectable
    if found is None or found.effect <= effect or analysis.unlike_itself >= effect or analysis.raised:
        return None
    return found.units_for(effect)


def _round_up(seconds: float) -> int:
    """This duration plus a tenth, rounded up to whole seconds."""
    return int(1.1 * seconds) + 1


def _causes(arms: Sequence[CommandResult]) -> tuple[CauseCount, ...]:
    """The causes of disturbances over all arms, the most frequent first."""
    counts: dict[str, int] = {}
    for each in arms:
        for row in each.causes:
            counts[row.cause] = counts.get(row.cause, 0) + row.trials
    return tuple(
        CauseCount(cause, trials, None, None) for cause, trials in sorted(counts.items(), key=lambda item: -item[1])
    )
