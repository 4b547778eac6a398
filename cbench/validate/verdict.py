"""Format the result of a validation as text."""

from __future__ import annotations

from cbench.validate.result import ValidatedWorkload, ValidationResult

MOST = 5
STEADY = 3.0
"""Work varies by itself if its coefficient of variation is above this multiple of the etalon's."""


def verdict(result: ValidationResult) -> list[str]:
    """The lines of the verdict: first the answer, then the reasons and remarks, then missing instruments and trials."""
    return [
        _answer(result),
        *_faults(result),
        *_first_runs(result),
        *_steady(result),
        *_clocks(result),
        *_lost(result),
        *_rest(result),
    ]


def _answer(result: ValidationResult) -> str:
    judged = sum(each.holds is not None for each in result.checks)
    if not judged:
        return "No instrument can be judged: no check was possible."
    if result.at_fault:
        return f"At fault: {', '.join(result.at_fault)}."
    return f"No instrument is at fault: all {judged:,} checks pass."


def _faults(result: ValidationResult) -> list[str]:
    said = [
        f"{each.place}: {', '.join(each.instruments)}: violated: {each.rule}; {each.words}."
        for each in result.findings
        if each.holds is False
    ]
    said += [
        f"{each.place}: {each.second} is {each.ratio:.3g} times {each.first}."
        for each in result.agreement
        if each.holds is False
    ]
    said += [
        f"etalon: {each.instruments[0]} reads at least {each.said:.6g} s instead of {each.wanted:g} s."
        for each in result.etalon
        if each.holds is False
    ]
    return _some(said, "more in --json")


def _first_runs(result: ValidationResult) -> list[str]:
    said = [
        f"{each.place}: the first {name} is {metric.first:.4g}, the median {metric.median:.4g}: a warm-up."
        for each in result.workloads
        for name, metric in each.metrics.items()
        if metric.first_run.flagged
    ]
    return _some(said, "more first runs differ from the others; see --json")


def _steady(result: ValidationResult) -> list[str]:
    """A sentence on work that varies by itself: a fixed amount of work spreads much while the etalon spreads little (TN
    1855, section 3.8).
    """
    spread = {each.workload: _cv(each) for each in result.workloads if not each.kind}
    known = spread.pop("etalon", None)
    if known is None:
        return []
    moved = [f"{name} by {cv:.3g} %" for name, cv in spread.items() if cv is not None and cv > STEADY * known]
    if not moved:
        return []
    return [f"The etalon varies by {known:.2g} %, {', '.join(moved)}: the work itself varies, not the clocks."]


def _cv(workload: ValidatedWorkload) -> float | None:
    """The coefficient of variation, in %, of the work alone, measured with the clock that the etalon reads; None if
    unknown.
    """
    raw = workload.metrics.get("raw_s")
    return None if raw is None else raw.cv_pct


def _clocks(result: ValidationResult) -> list[str]:
    source = f" ({result.clocksource})" if result.clocksource else ""
    line = f"All clocks of this host tick from one source{source}: their agreement proves nothing about its rate."
    return [line] if result.etalon else []


def _lost(result: ValidationResult) -> list[str]:
    said = []
    for each in result.workloads:
        if each.samples_lost:
            said.append(f"{each.place}: the kernel has lost {each.samples_lost:,} records: the count is too low.")
        if each.samples_throttled:
            said.append(f"{each.place}: sampling was paused {each.samples_throttled:,} times: the count is too low.")
    return said


def _rest(result: ValidationResult) -> list[str]:
    said = [f"{each.read} is unavailable: {each.missing}." for each in result.instruments if each.missing]
    if result.trials_failed:
        said.append(f"{result.trials_failed:,} trials failed.")
        said += [f"{each.test}: {each.reason}." for each in result.failures[:MOST]]
    if result.trials_done < result.trials:
        said.append(f"So far: {result.trials_done:,} of {result.trials:,} trials.")
    return said


def _some(said: list[str], more: str) -> list[str]:
    return said if len(said) <= MOST else [*said[:MOST], f"{len(said) - MOST:,} {more}."]
