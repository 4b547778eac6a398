"""Derive a trial's cycles from the chains of additions around it, and decide whether the chains can measure the trial.

A narrow chain takes one core cycle per addition, so at that moment, ticks / cycles = (chain's ticks) / length. A trial
is kept if its two narrow chains agree: neither was interrupted, and the frequency did not change between them. A wide
chain uses all execution units of the core in each cycle. If the core also runs another thread, the wide chain takes
longer relative to the narrow one; the trial may then have taken longer too, and no clock shows this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from cbench.model import DISAGREE, SHARED, SWITCH, TASK, Calibration, ChainTimes, Trial, TrialCause
from quiet import chains_agree, unshared_ratio

MARKS = (DISAGREE, SHARED)
STEPS = 2
NARROWER, PLAUSIBLE = 0.02, 2.2
"""The tolerance for the ratio of a wide to a narrow chain, as a share, in addition to STEPS steps of the clock; and the
largest factor by which another thread lengthens a wide chain. quiet uses the same values for its chains.
"""
SLOWEST = 1.02
"""If chains disagree, their time counts at most as this multiple of the fastest earlier time, because both may have
been interrupted. An omitted trial then has too many cycles rather than too few.
"""


def cycles(times: ChainTimes, calibration: Calibration) -> float:
    """The cycles of a trial: by both chains, or by the shorter one if they disagree, because interruptions lengthen a
    chain; 0 if the chain took no longer than the calibration's edge.
    """
    chain = (times.before + times.after) / 2 - calibration.edge
    if not chains_agree(times.before, times.after, calibration.step):
        most = SLOWEST * calibration.ticks_per_cycle * times.length
        chain = min(min(times.before, times.after) - calibration.edge, most)
    return times.ticks * times.length / chain if chain > 0 else 0.0


def wide_ratio(times: ChainTimes) -> float:
    """The larger of two ratios of the wide chain's time to the narrow chain's: before and after the trial."""
    return max(times.wide_before / times.before, times.wide_after / times.after)


def one_sided(times: ChainTimes) -> bool:
    """Whether one of the two wide chains is clearly longer than the other, relative to its narrow chain."""
    before, after = times.wide_before / times.before, times.wide_after / times.after
    return max(before, after) > min(before, after) * (1 + NARROWER)


def marked(trials: Sequence[Trial], calibration: Calibration | None) -> list[Trial]:
    """The trials of one process. Each trial that its chains reject gets the cause DISAGREE or SHARED. The trials are
    unchanged if there is no calibration, or if a trial has no chains.
    """
    timed = [trial.chains for trial in trials if trial.chains]
    if calibration is None or len(timed) < len(trials):
        return list(trials)
    found, _ = marks(timed, calibration.step, calibration.machine)
    return [_with_mark(trial, mark) for trial, mark in zip(trials, found, strict=True)]


def unmarked(trial: Trial) -> tuple[TrialCause, ...]:
    """A trial's causes, without those that its chains reveal."""
    return tuple(cause for cause in trial.causes if cause.kind not in MARKS)


def _with_mark(trial: Trial, mark: str) -> Trial:
    others = unmarked(trial)
    if mark == SHARED and others and trial.chains and one_sided(trial.chains):
        mark = DISAGREE  # the interruption of the trial also hit one wide chain
    if not mark and len(others) == len(trial.causes):
        return trial
    return replace(trial, causes=(*others, TrialCause(mark)) if mark else others)


def kept(trial: Trial) -> bool:
    """Whether the trial is valid, its chains determine its cycles, and no other task ran within it. The trial's ticks
    would include the ticks of such a task.
    """
    return trial.valid and not any(cause.kind in (*MARKS, SWITCH, TASK) for cause in trial.causes)


def marks(trials: Sequence[ChainTimes], step: int, machine: str) -> tuple[list[str], str]:
    """ "", DISAGREE or SHARED for each trial; and the reason why no trial can be kept, "" if one can."""
    agreeing = [chains_agree(each.before, each.after, step) for each in trials]
    ratios = [(each.wide_before / each.before, each.wide_after / each.after) for each in trials]
    alone, why = unshared_ratio([max(pair) for pair, same in zip(ratios, agreeing, strict=True) if same], machine)
    found = []
    for each, pair, same in zip(trials, ratios, agreeing, strict=True):
        margin = (alone or 0.0) * NARROWER + STEPS * step / each.before
        interrupted = min(pair) < (alone or 0.0) - margin or max(pair) > PLAUSIBLE * (alone or max(pair)) + margin
        if not same or interrupted:  # an interruption of a narrow or a wide chain
            found.append(DISAGREE)
        else:
            found.append(SHARED if max(pair) > (alone or 0.0) + margin else "")
    return found, why
