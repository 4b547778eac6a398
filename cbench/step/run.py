"""What `cbench step` does, between the command line and the chart."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cbench.interfere import differing
from cbench.machine import describe
from cbench.measure import measurement
from cbench.run import table
from cbench.run.run import tell
from cbench.step import frequency
from cbench.step import measure as step
from cbench.step import table as render_step
from cbench.sweep.run import one_cpu
from cbench.workloads import registry
from quiet.errors import UsageError
from quiet.host.reader import Reader
from quiet.settings.journal import isolated_cpus


@dataclass(frozen=True, slots=True)
class StepRequest:
    """The options of `cbench step` as they were typed; frequencies in kHz, None: the lowest and the highest."""

    workload: str
    from_khz: int | None
    to_khz: int | None
    cpu: str | None
    trials: int
    counter: str
    params: list[str]
    timeout: float


def measure(request: StepRequest) -> dict[str, Any]:
    """The report; QuietError for whatever stands in the way."""
    options = measurement.options(request.trials, "auto", request.counter, request.timeout, False)
    if request.trials < 4 * step.LEAST_SIDE:
        raise UsageError(f"--trials {request.trials}: at least {4 * step.LEAST_SIDE}, half of them after the step")
    isolated = isolated_cpus()
    cpu = one_cpu(request.cpu, isolated)
    settings = registry.parse_settings(request.params)
    with tempfile.TemporaryDirectory(prefix="cbench-") as cache:
        chosen = measurement.find([request.workload], Path(cache), tell)
        registry.check_settings(chosen, settings)
        params = registry.parameters(chosen[0], settings, False)
        measurement.check_memory(chosen[0], params)
        policy = frequency.policy(Reader(), cpu)
        first = frequency.checked(policy, "--from", request.from_khz, policy.low)
        last = frequency.checked(policy, "--to", request.to_khz, policy.high)
        if first == last:
            raise UsageError(f"--from {first} --to {last}: no step; give two frequencies")
        with table.TrialBar() as bar:
            stepped = step.run(chosen[0], params, cpu, isolated, options, policy, (first, last), bar.show)
    others = sorted(policy.cpus - {cpu})
    if others:
        tell(f"the frequency of CPUs {', '.join(str(c) for c in others)} was changed along: one cpufreq policy")
    for line in differing.lines(stepped.result.workload.name, cpu, stepped.result.trials):
        tell(line)
    return step.step_dict(stepped, policy, (first, last), describe.describe([cpu], isolated))


def show(made: Mapping[str, Any]) -> None:
    render_step.step(made)
