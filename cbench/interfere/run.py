"""Measure interference with the options of `cbench interfere`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cbench.console import TrialBar, tell
from cbench.interfere import measure as interference
from cbench.interfere.load_generator import Spec
from cbench.interfere.result import InterfereResult, all_trials, interfere_result
from cbench.machine import describe
from cbench.machine.cpus import one_cpu
from cbench.machine.memory import free_memory
from cbench.machine.topology import Cache, caches, places
from cbench.measure.options import measure_options
from cbench.measure.shortcomings import differing
from cbench.study.process.scratch import scratch
from cbench.workloads import registry, selection
from quiet import Facts, Reader, UsageError, isolated_cpus, isolated_turn

TRIALS, QUICK_TRIALS = 200, 40
ROUNDS, QUICK_ROUNDS = 5, 2
LOADS = ("hash", "memory")
"""The default loads: one that uses only its core, and one that fills the caches and uses memory."""

LEAST_BUFFER = 32 << 20
MEMORY_SHARE = 1 / 8


@dataclass(frozen=True, slots=True)
class InterfereOptions:
    """The options of `cbench interfere`; None stands for the default."""

    workloads: Sequence[str]
    loads: Sequence[str] = LOADS
    cpu: str | None = None
    trials: int | None = None
    rounds: int | None = None
    counter: str = "auto"
    params: Sequence[str] = ()
    seed: int = 1
    timeout: float = 120
    quick: bool = False


def specs(names: Iterable[str], buffer: int) -> list[Spec]:
    """The specs of the named loads, each with a buffer of this size in bytes if it uses one. The CPUs are assigned
    later.
    """
    loads = []
    for name in dict.fromkeys(names):
        workload = registry.find(name)
        settings = {"size": buffer} if any(p.name == "size" for p in workload.parameters) else {}
        loads.append(Spec(name, -1, registry.parameters(workload, settings, False)))
    return loads


def buffer_size(near: Sequence[Cache], free: int) -> int:
    """The size of a load's buffer in bytes: twice the last-level cache, so that the load evicts everything else, and at
    least LEAST_BUFFER, but no more than MEMORY_SHARE of the free memory.
    """
    wanted = max(LEAST_BUFFER, 2 * max((cache.size or 0 for cache in near), default=0))
    return max(min(wanted, int(free * MEMORY_SHARE)) & ~0xFFF, 4096)


def measure(options: InterfereOptions) -> InterfereResult:
    """Measure and return the result. Raises UsageError for wrong options, before measuring, and QuietError if the
    measurement fails.
    """
    trials = options.trials if options.trials is not None else QUICK_TRIALS if options.quick else TRIALS
    rounds = options.rounds if options.rounds is not None else QUICK_ROUNDS if options.quick else ROUNDS
    if not 1 <= rounds <= 1000:
        raise UsageError(f"--rounds {rounds}: must be from 1 to 1,000")
    how = measure_options(trials, "auto", options.counter, options.timeout, False)
    how = replace(
        how, trials=-(-trials // rounds)
    )  # rounded up, so that each condition has at least the requested number
    reader = Reader()
    isolated = isolated_cpus()
    cpu = one_cpu(options.cpu, isolated)
    host_places = places(Facts(reader), cpu, os.sched_getaffinity(0))
    buffer = buffer_size(caches(reader, cpu), free_memory(reader))
    conditions = interference.conditions(host_places, specs(options.loads, buffer))
    settings = registry.parse_settings(options.params)
    with scratch() as cache:
        chosen, params = selection.select(options.workloads, settings, options.quick, cache, tell)
        order = interference.schedule(len(conditions), rounds, options.seed)
        plan = interference.InterferePlan(chosen, params, cpu, isolated, how, conditions, order)
        used = frozenset({cpu, *(each.spec.cpu for each in conditions if each.spec)})
        with isolated_turn(used, "cbench interfere", tell), TrialBar() as bar:
            interference.run(plan, bar.show)
    missing = describe.missing([result for each in conditions for visit in each.visits for result in visit])
    host = replace(describe.describe([cpu], isolated), missing=missing)
    result = interfere_result(plan, host_places, host, options.seed)
    for line in missing:
        tell(line)
    for number, each in enumerate(result.results):
        for line in differing(each.workload, cpu, each.outputs, len(all_trials(conditions, number))):
            tell(line)
    return result
