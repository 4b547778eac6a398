"""What `cbench step` does, between the command line and the chart."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cbench import batch, differing, host, render, render_step, step, step_frequency, workloads
from cbench.commands import tell
from cbench.commands_sweep import one_cpu
from quiet.errors import UsageError
from quiet.host import Reader
from quiet.placement import isolated_cpus


@dataclass(frozen=True, slots=True)
class Request:
    """The options of `cbench step` as they were typed; frequencies in kHz, None: the lowest and the highest."""

    workload: str
    from_khz: int | None
    to_khz: int | None
    cpu: str | None
    trials: int
    counter: str
    params: list[str]
    timeout: float


def measure(request: Request) -> dict[str, Any]:
    """The report; QuietError for whatever stands in the way."""
    options = batch.options(request.trials, "auto", request.counter, request.timeout, False)
    if request.trials < 4 * step.LEAST_SIDE:
        raise UsageError(f"--trials {request.trials}: at least {4 * step.LEAST_SIDE}, half of them after the step")
    isolated = isolated_cpus()
    cpu = one_cpu(request.cpu, isolated)
    settings = workloads.parse_settings(request.params)
    with tempfile.TemporaryDirectory(prefix="cbench-") as cache:
        chosen = batch.find([request.workload], Path(cache), tell)
        workloads.check_settings(chosen, settings)
        params = workloads.parameters(chosen[0], settings, False)
        batch.check_memory(chosen[0], params)
        policy = step_frequency.policy(Reader(), cpu)
        first = step_frequency.checked(policy, "--from", request.from_khz, policy.low)
        last = step_frequency.checked(policy, "--to", request.to_khz, policy.high)
        if first == last:
            raise UsageError(f"--from {first} --to {last}: no step; give two frequencies")
        with render.Bar() as bar:
            stepped = step.run(chosen[0], params, cpu, isolated, options, policy, (first, last), bar.show)
    others = sorted(policy.cpus - {cpu})
    if others:
        tell(f"the frequency of CPUs {', '.join(str(c) for c in others)} was changed along: one cpufreq policy")
    for line in differing.lines(stepped.result.workload.name, cpu, stepped.result.trials):
        tell(line)
    return step.step_dict(stepped, policy, (first, last), host.describe([cpu], isolated))


def show(made: Mapping[str, Any]) -> None:
    render_step.step(made)
