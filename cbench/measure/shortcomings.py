"""List the ways in which results fall short of the request."""

from __future__ import annotations

from collections.abc import Sequence

from cbench.measure.result import WorkloadResult
from cbench.workloads.user_code import is_user_code


def shortcomings(results: Sequence[WorkloadResult]) -> list[str]:
    """The ways in which results fall short of the request, one line each; [] means exit code 0."""
    lines: list[str] = []
    for result in results:
        counted = result.clean_trials
        if counted.reached is False:
            count, process = min((count, number) for number, count in enumerate(counted.each))
            total = result.processes.each[process].trials
            which = f", process {process + 1}" if len(counted.each) > 1 else ""
            lines.append(
                f"{result.workload} on CPU {result.cpu}{which}: only {count:,} of {total:,} trials were clean "
                f"({counted.means}), but {counted.wanted:,} were requested: allow more with --trials, or make the host "
                "quieter"
            )
        lines += differing(result.workload, result.cpu, result.outputs, len(result.trials))
    return lines


def differing(workload: str, cpu: int, outputs: int, trials: int) -> list[str]:
    """One line if trials of one workload returned different results, otherwise []."""
    if outputs <= 1:
        return []
    return [
        f"{workload} on CPU {cpu}: non-deterministic: it returned {outputs:,} different results in "
        f"{trials:,} trials, so they did different work"
        + (", or the function does not return uint64_t" if is_user_code(workload) else "")
    ]
