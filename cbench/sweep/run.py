"""Measure a memory sweep with the options of `cbench sweep memory`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cbench.console import TrialBar, tell
from cbench.machine import describe, tlb
from cbench.machine.cpus import one_cpu
from cbench.machine.memory import free_memory
from cbench.machine.topology import caches
from cbench.measure.options import measure_options
from cbench.report import figures
from cbench.sweep import figure
from cbench.sweep import measure as sweeping
from cbench.sweep import sizes as working_sets
from cbench.sweep.result import SweepResult, sweep_result
from quiet import Reader, isolated_cpus, isolated_turn

TRIALS, QUICK_TRIALS = 100, 20
ACCESSES, QUICK_ACCESSES = "1e4,1e5,1e6", "1e4,1e5"


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """The options of `cbench sweep memory`; None stands for the default."""

    sizes: str | None = None
    accesses: str | None = None
    trials: int | None = None
    workload: str = "memory"
    cpu: str | None = None
    counter: str = "auto"
    seed: int = 1
    timeout: float = 120
    quick: bool = False
    output: str | None = None


def measure(options: SweepOptions) -> SweepResult:
    """Measure the sweep and, with `output`, write its plot. Raises UsageError for wrong options, before measuring, and
    QuietError if the measurement fails.
    """
    quick = options.quick
    if options.output is not None:
        figures.check(options.output)
    trials = options.trials if options.trials is not None else QUICK_TRIALS if quick else TRIALS
    how = measure_options(trials, "auto", options.counter, options.timeout, False)
    workload = sweeping.find(options.workload)
    default = working_sets.QUICK_SIZES if quick else working_sets.SIZES
    sizes = working_sets.sizes(options.sizes or default)
    accesses = working_sets.accesses(options.accesses or (QUICK_ACCESSES if quick else ACCESSES))
    reader = Reader()
    fit, left_out = working_sets.fitting(sizes, free_memory(reader))
    isolated = isolated_cpus()
    cpu = one_cpu(options.cpu, isolated)
    notes = [left_out] if left_out else []
    for note in notes:
        tell(note)
    grid = sweeping.grid(fit, accesses, options.seed)
    with isolated_turn(frozenset({cpu}), "cbench sweep memory", tell), TrialBar() as bar:
        cells = sweeping.run(workload, grid, cpu, isolated, how, bar.show, tell)
    missing = describe.missing([cell.result for cell in cells if cell.result])
    for line in missing:
        tell(line)
    host = replace(describe.describe([cpu], isolated), missing=missing)
    result = sweep_result(
        workload.name,
        cpu,
        host,
        trials,
        options.seed,
        cells,
        caches(reader, cpu),
        tlb.read(cpu),
        notes,
    )
    if options.output is not None:
        figure.sweep(result, options.output)
        tell(f"plot written to {options.output}")
    return result
