"""Measure interference with the options of `cbench interfere`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cbench.console import TrialBar, tell
from cbench.interfere import measure as interference
from cbench.interfere.load_generator import Spec
from cbench.interfere.result import InterfereResult, interfere_result, trials
from cbench.machine import describe
from cbench.machine.cpus import one_cpu
from cbench.machine.memory import free_memory
from cbench.machine.topology import Cache, caches, places
from cbench.measure.options import MeasureOptions, measure_options
from cbench.measure.result import differing
from cbench.workloads import registry, selection
from quiet import Facts, Reader, UsageError, isolated_cpus

TRIALS, QUICK_TRIALS = 200, 40
ROUNDS, QUICK_ROUNDS = 5, 2
LOADS = ("hash", "memory")
"""One that needs only its core, and one that fills the caches and asks for memory."""

LEAST_BUFFER = 32 << 20
MEMORY_SHARE = 1 / 8


@dataclass(frozen=True, slots=True)
class InterfereOptions:
    """What `cbench interfere` measures, and `how` in each visit; made by interfere_options()."""

    workloads: Sequence[str]
    loads: Sequence[str]
    how: MeasureOptions
    rounds: int
    cpu: str | None = None
    params: Sequence[str] = ()
    seed: int = 1
    quick: bool = False


def interfere_options(
    workloads: Sequence[str],
    *,
    loads: Sequence[str] = (),
    cpu: str | None = None,
    trials: int | None = None,
    rounds: int | None = None,
    counter: str = "auto",
    params: Sequence[str] = (),
    seed: int = 1,
    timeout: float = 120,
    quick: bool = False,
) -> InterfereOptions:
    """UsageError for what cannot be measured so; None: the default."""
    wanted = trials if trials is not None else QUICK_TRIALS if quick else TRIALS
    visits = rounds if rounds is not None else QUICK_ROUNDS if quick else ROUNDS
    if not 1 <= visits <= 1000:
        raise UsageError(f"--rounds {visits}: from 1 to 1,000")
    whole = measure_options(wanted, "auto", counter, timeout, False)
    how = replace(whole, trials=interference.per_visit(wanted, visits))
    return InterfereOptions(workloads, loads or LOADS, how, visits, cpu, params, seed, quick)


def specs(names: Iterable[str], buffer: int) -> list[Spec]:
    """The loads by name, each with a buffer of that many bytes where it has one; where they run is not said yet."""
    found = []
    for name in dict.fromkeys(names):
        workload = registry.find(name)
        settings = {"size": buffer} if any(p.name == "size" for p in workload.parameters) else {}
        found.append(Spec(name, -1, registry.parameters(workload, settings, False)))
    return found


def buffer_size(near: Sequence[Cache], free: int) -> int:
    """Bytes of a load's buffer: twice the last-level cache, so that it is emptied, but little of the free memory."""
    wanted = max(LEAST_BUFFER, 2 * max((cache.size or 0 for cache in near), default=0))
    return max(min(wanted, int(free * MEMORY_SHARE)) & ~0xFFF, 4096)


def measure(options: InterfereOptions) -> InterfereResult:
    """The result; QuietError for whatever prevents it."""
    reader = Reader()
    isolated = isolated_cpus()
    cpu = one_cpu(options.cpu, isolated)
    found = places(Facts(reader), cpu, os.sched_getaffinity(0))
    buffer = buffer_size(caches(reader, cpu), free_memory(reader))
    conditions = interference.conditions(found, specs(options.loads, buffer))
    settings = registry.parse_settings(options.params)
    with tempfile.TemporaryDirectory(prefix="cbench-") as cache:
        chosen, params = selection.select(options.workloads, settings, options.quick, Path(cache), tell)
        order = interference.schedule(len(conditions), options.rounds, options.seed)
        plan = interference.InterferePlan(chosen, params, cpu, isolated, options.how, conditions, order)
        with TrialBar() as bar:
            measured = interference.run(plan, bar.show)
    missing = describe.missing([result for each in measured for visit in each.visits for result in visit])
    host = replace(describe.describe([cpu], isolated), missing=missing)
    made = interfere_result(plan, measured, found, host, options.seed)
    counts = [len(trials(measured, number)) for number in range(len(chosen))]
    differ = [
        line
        for each, count in zip(made.results, counts, strict=True)
        for line in differing(each.workload, cpu, each.outputs, count)
    ]
    for line in [*missing, *differ]:
        tell(line)
    return made
