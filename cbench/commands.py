"""What the commands do, between the command line and the tables."""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cbench import batch, catalogue, host, render, report, workloads
from cbench.choice import choose_cpus
from quiet.placement import isolated_cpus

TRIALS = 1000
QUICK_TRIALS = 200


@dataclass(frozen=True, slots=True)
class Request:
    """The options of `cbench run` as they were typed; `trials` None: the default."""

    workloads: list[str]
    trials: int | None
    cpus: list[str]
    warmup: str
    counter: str
    params: list[str]
    quick: bool
    timeout: float
    trace: bool = True


def tell(line: str) -> None:
    """A message for the user: stderr, one line."""
    sys.stderr.write(f"cbench: {line}\n")


def measure(request: Request) -> dict[str, Any]:
    """The report of `cbench run`; QuietError for whatever stands in the way."""
    default = QUICK_TRIALS if request.quick else TRIALS
    trials = default if request.trials is None else request.trials
    options = batch.options(trials, request.warmup, request.counter, request.timeout, request.trace)
    isolated = isolated_cpus()
    cpus = choose_cpus(request.cpus, isolated)
    settings = workloads.parse_settings(request.params)
    with tempfile.TemporaryDirectory(prefix="cbench-") as cache:
        chosen = batch.find(request.workloads, Path(cache), tell)
        workloads.check_settings(chosen, settings)
        params = [workloads.parameters(workload, settings, request.quick) for workload in chosen]
        for workload, values in zip(chosen, params, strict=True):
            batch.check_memory(workload, values)
        with render.Bar() as bar:
            results = batch.measure(chosen, params, cpus, isolated=isolated, options=options, show=bar.show)
    described = host.describe(cpus, isolated)
    made = report.run_dict(results, {**described, "missing": host.missing(results)})
    for line in host.missing(results):
        tell(line)
    return made


def show_measured(made: dict[str, Any]) -> None:
    render.results(made)


def listing() -> dict[str, Any]:
    """The object of `cbench list --json`."""
    return catalogue.content()


def show_listing(content: dict[str, Any]) -> None:
    render.catalogue(content)
