"""An analysis as plain objects, for programs and for whatever shows it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cbench.order import verdict
from cbench.order.stats import ci_overlap, median_ci, pairwise, power
from cbench.order.stats.analysis import Analysis, TestResult
from cbench.order.stats.data import START, Trials
from cbench.order.stats.within_run_effects import Against, Grouped
from cbench.stats import multiple_testing
from cbench.stats.tails import chi2_sf

POWER = 0.8
NAMED_PAIRS = 1000
MOST_PAIRS = 20_000
"""Of more pairs of tests only so many are named, those with the smallest p-values first."""
MOST_GROUPS, NAMED_GROUPS = 200, 20
"""Of more positions or predecessors of a test only so many, those with the most trials."""


@np.errstate(over="ignore", invalid="ignore")
def shape(trials: Trials, found: Analysis, warnings: Sequence[str], every_rule: bool, delta: float) -> dict[str, Any]:
    """The whole result. `delta`: the shift in % for which runs are counted. Numbers that are not known are None."""
    options = found.options
    tested = sum(result.test is not None for result in found.results)
    corrected = options.alpha / max(tested, 1)
    made: dict[str, Any] = {
        "order_matters": found.order_matters,
        "alpha": options.alpha,
        "alpha_bonferroni": corrected,
        "correction": options.correction,
        "intervals": {"rule": options.interval, "level": found.level, "case": options.case},
        "null": options.null,
        "failures": options.failures,
        "design": design(found, warnings),
        "tests": {},
        "power": {"delta_pct": delta, "power": POWER},
    }
    alone = not any(result.fixed.values.size or result.fixed.failed for result in found.results)
    p = {
        name: multiple_testing.adjusted(_ps(found, name), options.correction)
        for name in ("position", "predecessor", "drift")
    }
    if alone:  # nothing to compare with: whether the order matters is what position and predecessor say, one family
        together = multiple_testing.adjusted([*_ps(found, "position"), *_ps(found, "predecessor")], options.correction)
        p["position"], p["predecessor"] = together[: len(found.results)], together[len(found.results) :]
        made["order_matters"] = bool((together < options.alpha).any())
    for number, result in enumerate(found.results):
        one = _test(
            trials, found, result, corrected if options.correction != multiple_testing.NONE else options.alpha, delta
        )
        for name, values in p.items():
            one[f"{name}_significant"] = bool(values[number] < options.alpha)
        if every_rule:
            one["every_rule"] = _every_rule(found, result, corrected)
        made["tests"][result.name] = one
    made["predecessors"] = predecessors(trials, found)
    made["across"] = _across(trials, found)
    made["design"]["warnings"] += verdict.not_compared(made["tests"])
    if _extreme(trials):
        made = _finite(made)
    made["verdict"] = verdict.verdict(made)
    return made


def _extreme(trials: Trials) -> bool:
    """Whether there are values whose squares or shares may be no finite numbers."""
    size = np.abs(trials.value[trials.value != 0])
    return bool((size > 1e150).any() or (size < 1e-150).any())


def _finite(made: Any) -> Any:
    """The same with None in place of numbers that are none."""
    if isinstance(made, dict):
        return {key: _finite(each) for key, each in made.items()}
    if isinstance(made, (list, tuple)):
        return [_finite(each) for each in made]
    return _known(made) if isinstance(made, float) else made


def design(found: Analysis, warnings: Sequence[str]) -> dict[str, Any]:
    """How the runs lay in time."""
    sequence = found.sequence
    made: dict[str, Any] = {"interleaved": None, "warnings": list(warnings)}
    if sequence is not None:
        made |= {
            "interleaved": sequence.interleaved,
            "runs_fixed": sequence.fixed,
            "runs_random": sequence.random,
            "stretches": sequence.stretches,
            "p_so_few_stretches": sequence.p_few,
        }
        if sequence.fixed and sequence.random and not sequence.interleaved:
            made["warnings"].append(
                f"blocked in time: {sequence.fixed:,} fixed and {verdict.counted(sequence.random, 'random run')} in "
                f"{sequence.stretches:,} stretches; what changed with time cannot be told from what the order does"
            )
    return made


def predecessors(trials: Trials, found: Analysis) -> list[dict[str, Any]]:
    """Each test after each other one in the random runs, against the rest of its trials; p-values by Holm over all.

    Of more than MOST_PAIRS only the NAMED_PAIRS with the smallest p-values.
    """
    rows = [(result.name, result.after) for result in found.results if result.after is not None]
    if not rows:
        return []
    h = np.concatenate([after.h for _, after in rows])
    starts = np.concatenate([[0], np.cumsum([after.h.size for _, after in rows])])
    foremost = np.argsort(-h, kind="stable")[: h.size if h.size <= MOST_PAIRS else NAMED_PAIRS]
    holm = dict(
        zip(
            foremost.tolist(),
            multiple_testing.holm_of_smallest([chi2_sf(each, 1) for each in h[foremost].tolist()], h.size).tolist(),
            strict=True,
        )
    )
    named = np.sort(foremost)
    made = []
    for number, row in zip(named.tolist(), (np.searchsorted(starts, named, side="right") - 1).tolist(), strict=True):
        name, after = rows[row]
        each = after[number - int(starts[row])]
        made.append(
            {
                "test": name,
                "after": name_of(trials, each.label),
                **against(each),
                "p_holm": holm[number],
                "significant": holm[number] < found.options.alpha,
            }
        )
    return made


def against(each: Against) -> dict[str, Any]:
    return {
        "n": each.n,
        "median": each.median,
        "median_others": each.median_others,
        "delta_pct": each.delta_pct,
        "p": each.p,
    }


def name_of(trials: Trials, label: int) -> str | None:
    """A predecessor's name; None for the beginning of a run."""
    return None if label == START else trials.test_names[label]


def _ps(found: Analysis, name: str) -> list[float]:
    each = [getattr(result, name) for result in found.results]
    return [nan if one is None else one.p if name == "drift" else one.test.p for one in each]


def _test(trials: Trials, found: Analysis, result: TestResult, alpha: float, delta: float) -> dict[str, Any]:
    rule, level = found.options.interval, found.level
    fixed, random = result.interval(False, rule, level), result.interval(True, rule, level)
    apart = power.spread(result.fixed.values, result.random.values)
    each_order = min(result.fixed.values.size, result.random.values.size)
    seen = power.detectable(apart, each_order, alpha, POWER)
    alike = _alike(result)
    unknown = alike or max(result.fixed.values.size, result.random.values.size) < 2  # nothing says how they vary
    test = result.test
    return {
        "n_fixed": result.fixed.values.size,
        "n_random": result.random.values.size,
        "failed_fixed": result.fixed.failed,
        "failed_random": result.random.failed,
        "H": None if test is None else test.h,
        "p": None if test is None else test.p,
        "p_permutation": result.p_permutation,
        "p_adjusted": result.p_adjusted,
        "significant": result.significant,
        "eta2": None if test is None else test.eta2,
        "epsilon2": None if test is None else test.epsilon2,
        "delta_pct_mean": result.delta_mean,
        "delta_pct_median": result.delta_median,
        "mean_fixed": _known(result.fixed.mean),
        "mean_random": _known(result.random.mean),
        "median_fixed": _known(result.fixed.median),
        "median_random": _known(result.random.median),
        "cov_fixed": _known(result.fixed.deviation / result.fixed.mean) if result.fixed.mean else None,
        "cov_random": _known(result.random.deviation / result.random.mean) if result.random.mean else None,
        "ci_fixed": None if fixed is None else [fixed.low, fixed.high],
        "ci_random": None if random is None else [random.low, random.high],
        "ci_needs": _needs(result, rule, level),
        "case": result.case(found.options.case, rule, level),
        "gap": None if fixed is None or random is None else ci_overlap.gap(fixed, random),
        "position_p": None if result.position is None else result.position.test.p,
        "position": None if result.position is None else _grouped(result.position, int),
        "predecessor_p": None if result.predecessor is None else result.predecessor.test.p,
        "predecessor": None
        if result.predecessor is None
        else _grouped(result.predecessor, lambda label: name_of(trials, label)),
        "first_trial": None if result.first is None else against(result.first),
        "drift_p": None if result.drift is None else result.drift.p,
        "drift_rho": None if result.drift is None else result.drift.rho,
        "alike": alike,
        "runs_needed": None if unknown else power.runs_needed(apart, delta / 100, alpha, POWER),
        "detectable_pct": None if unknown or seen is None else 100 * seen,
    }


def _alike(result: TestResult) -> bool:
    """Whether all values of both orders are one."""
    ends = [part.values[at] for part in (result.fixed, result.random) if part.values.size for at in (0, -1)]
    return bool(ends) and bool(min(ends) == max(ends))


def _needs(result: TestResult, rule: str, level: float) -> int | None:
    """How many results an interval takes, where there are some in an order, but too few."""
    sizes = [part.values.size for part in (result.fixed, result.random) if part.values.size]
    if all(median_ci.ranks(size, level, rule) for size in sizes):
        return None
    return next(n for n in itertools.count(2) if median_ci.ranks(n, level, rule))


def _grouped(found: Grouped, named: Callable[[int], object]) -> dict[str, Any]:
    shown = slice(None) if found.labels.size <= MOST_GROUPS else np.sort(_largest(found.sizes))
    groups = zip(*(each[shown].tolist() for each in (found.labels, found.sizes, found.medians)), strict=True)
    return {
        "H": found.test.h,
        "doubtful": found.doubtful,
        "labels": found.labels.size,
        "groups": [{"label": named(label), "n": n, "median": median} for label, n, median in groups],
    }


def _largest(sizes: NDArray[np.intp]) -> NDArray[np.intp]:
    return np.argsort(-sizes, kind="stable")[:NAMED_GROUPS]


def _every_rule(found: Analysis, result: TestResult, corrected: float) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for rule in median_ci.RULES:
        for name, level in (("95", 0.95), ("bonferroni", 1 - corrected)):
            fixed, random = result.interval(False, rule, level), result.interval(True, rule, level)
            made[f"{rule}_{name}"] = {
                "level": level,
                "fixed": None if fixed is None else [fixed.low, fixed.high],
                "random": None if random is None else [random.low, random.high],
                "ranks_fixed": median_ci.ranks(result.fixed.values.size, level, rule),
                "ranks_random": median_ci.ranks(result.random.values.size, level, rule),
                **{f"case_{which}": result.case(which, rule, level) for which in ci_overlap.RULES},
            }
    return made


def _across(trials: Trials, found: Analysis) -> dict[str, Any]:
    """Pairs of tests with one metric; `say`: what each order says of `a` against `b`."""
    bounds = []
    for random in (False, True):
        each = [result.interval(random, found.options.interval, found.level) for result in found.results]
        bounds.append(
            ([nan if one is None else one.low for one in each], [nan if one is None else one.high for one in each])
        )
    groups: dict[str, list[int]] = {}
    for number in range(len(trials.names)):
        groups.setdefault(trials.metrics[number] if trials.metrics else "", []).append(number)
    made = pairwise.across(bounds[0], bounds[1], list(groups.values()), NAMED_PAIRS)
    say = {pairwise.BELOW: "below", pairwise.OPEN: "cannot tell", pairwise.ABOVE: "above"}
    return {
        "pairs": made.pairs,
        "changed": made.changed,
        "reversed": made.reversed,
        "left_off": made.changed - len(made.first),
        "named": [
            {
                "a": trials.names[each.a],
                "b": trials.names[each.b],
                "fixed": say[each.fixed],
                "random": say[each.random],
            }
            for each in made.first
        ],
    }


def _known(value: float) -> float | None:
    return value if isfinite(value) else None
