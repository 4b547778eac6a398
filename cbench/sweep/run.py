"""What `cbench sweep memory` does, between the command line and the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cbench.machine import describe, tlb
from cbench.machine.cpus import choose_cpus
from cbench.machine.topology import caches
from cbench.measure import measurement
from cbench.report import figures
from cbench.run import table
from cbench.run.run import tell
from cbench.sweep import figure, result
from cbench.sweep import measure as sweep
from cbench.sweep import sizes as sweep_sizes
from cbench.sweep import table as render_sweep
from quiet.errors import UsageError
from quiet.host.reader import Reader
from quiet.settings.journal import isolated_cpus

TRIALS, QUICK_TRIALS = 100, 20
ACCESSES, QUICK_ACCESSES = "1e4,1e5,1e6", "1e4,1e5"


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """The options of `cbench sweep memory` as they were typed; None: the default."""

    sizes: str | None
    half_steps: bool
    accesses: str | None
    trials: int | None
    workload: str
    cpu: str | None
    counter: str
    seed: int
    timeout: float
    quick: bool
    output: str | None


def one_cpu(text: str | None, isolated: frozenset[int]) -> int:
    """The CPU to measure on; UsageError for several."""
    found = choose_cpus([text] if text is not None else [], isolated)
    if len(found) > 1:
        raise UsageError(f"--cpu {text}: name one CPU, not {len(found)}")
    return found[0]


def measure(request: SweepRequest) -> dict[str, Any]:
    """The report of the sweep, its plot written; QuietError for whatever stands in the way."""
    reader, quick = Reader(), request.quick
    if request.output is not None:
        figures.check(request.output)
    trials = request.trials or (QUICK_TRIALS if quick else TRIALS) if request.trials != 0 else 0
    options = measurement.options(trials, "auto", request.counter, request.timeout, False)
    workload = sweep.find(request.workload)
    typed = request.sizes or (sweep_sizes.QUICK_SIZES if quick else sweep_sizes.SIZES)
    wanted = sweep_sizes.sizes(typed, request.half_steps)
    fit, left_out = sweep_sizes.fitting(wanted, sweep_sizes.free_memory(reader))
    isolated = isolated_cpus()
    cpu = one_cpu(request.cpu, isolated)
    near = caches(reader, cpu)
    planned = sweep.Sweep(
        workload=workload,
        sizes=fit,
        accesses=sweep_sizes.accesses(request.accesses or (QUICK_ACCESSES if quick else ACCESSES)),
        cpu=cpu,
        isolated=isolated,
        options=options,
        seed=request.seed,
        cached=max((cache.size or 0 for cache in near), default=0),
    )
    notes = [left_out] if left_out else []
    for note in notes:
        tell(note)
    tlbs = tlb.read(cpu)
    with table.TrialBar() as bar:
        cells = sweep.run(planned, bar.show, tell)
    described = describe.describe([cpu], isolated)
    missing = describe.missing([cell.result for cell in cells if cell.result])
    for line in missing:
        tell(line)
    made = result.sweep_dict(planned, cells, {**described, "missing": missing}, near, tlbs, notes)
    if request.output is not None:
        figure.sweep(made, request.output)
        tell(f"plot written to {request.output}")
    return made


def show(made: Mapping[str, Any]) -> None:
    render_sweep.sweep(made)
