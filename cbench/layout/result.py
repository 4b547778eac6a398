"""Define the result of `cbench layout` as frozen values for `--json` and the text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log1p
from statistics import median

from cbench.external.measure import Show
from cbench.layout.analyze import LayoutVariance, analyze, percent
from cbench.layout.measure import MeasuredLayouts, measure
from cbench.layout.options import LayoutOptions
from cbench.study.host_check import inside_profile
from quiet import UsageError


@dataclass(frozen=True, slots=True)
class BuildTime:
    """One build: its layout, the digest of its program, its median time in ns, and the excess of this time over that of
    the fastest build, in %.

    Time and excess exclude the host's drift, because they come from medians of differences from the mean of each block.
    """

    layout: str
    sha256: str
    median_ns: float
    slower_pct: float


@dataclass(frozen=True, slots=True)
class LayoutResult:
    """The effect of the layout.

    Shares refer to the variance of a single run, percentages to the time. `distinct`: number of programs with different
    bytes. `between_pct`, `within_pct`: standard deviations between builds, and between runs of one build;
    `between_high_pct`: the upper end of the interval of `between_pct`. `one_build_pct`: the smallest difference between
    two versions that one build of each can support. `builds_needed`: the number of builds of each version needed to
    show `effect_pct`, None if it exceeds 10,000.
    """

    preset: str
    seed: int
    builds: int
    distinct: int
    blocks: int
    seconds: float
    share: float
    share_interval: tuple[float, float]
    p: float
    between_pct: float
    between_high_pct: float
    within_pct: float
    range_pct: float
    one_build_pct: float
    effect_pct: float
    builds_needed: int | None
    times: tuple[BuildTime, ...]

    @property
    def layout_matters(self) -> bool:
        """Whether builds are shown to differ, at a significance level of 5 %."""
        return self.p <= 0.05


def run(options: LayoutOptions, show: Show, tell: Callable[[str], None]) -> LayoutResult:
    """Build, measure and analyze. Raises QuietError if a build or a run fails, or all builds are the same program."""
    inside_profile(options.profile, ",".join(options.cpus), sys.argv[1:])
    return result(options, measure(options, show, tell))


def result(options: LayoutOptions, measured: MeasuredLayouts) -> LayoutResult:
    """The result with the figures of measured builds. Raises UsageError if all builds are the same program."""
    distinct = len({build.sha256 for build in measured.builds})
    padded = any(build.layout.padding for build in measured.builds)
    if distinct == 1 and not padded:
        raise UsageError(
            f"all {options.builds} builds are the same program byte for byte: pass the values that preset "
            f"{options.preset} draws to the compiler or linker in --build"
        )
    times = [[trial.value for trial in build.trials] for build in measured.builds]
    found = analyze(list(zip(*times, strict=True)))
    return LayoutResult(
        preset=options.preset,
        seed=options.seed,
        builds=found.builds,
        distinct=distinct,
        blocks=found.blocks,
        seconds=measured.seconds,
        share=found.share,
        share_interval=(found.share_low, found.share_high),
        p=found.p,
        between_pct=percent(found.between),
        between_high_pct=percent(found.between_high),
        within_pct=percent(found.within),
        range_pct=percent(found.range),
        one_build_pct=percent(found.one_build()),
        effect_pct=100 * options.effect,
        builds_needed=found.builds_for(log1p(options.effect)),
        times=_times(measured, times, found),
    )


def _times(measured: MeasuredLayouts, times: list[list[int]], found: LayoutVariance) -> tuple[BuildTime, ...]:
    """The times of all builds, the fastest first."""
    fastest, middle = min(found.medians), median(found.medians)
    overall = median(value for values in times for value in values)
    rows = [
        BuildTime(build.layout.text, build.sha256, overall * exp(effect - middle), percent(effect - fastest))
        for build, effect in zip(measured.builds, found.medians, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: row.slower_pct))
