"""What `cbench interfere` does, between the command line and the table."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cbench.interfere import differing
from cbench.interfere import measure as interfere
from cbench.interfere import result as interfere_report
from cbench.interfere import table as render_interfere
from cbench.interfere.load_generator import Spec
from cbench.machine import describe
from cbench.machine.topology import Cache, caches, places
from cbench.measure import measurement
from cbench.run import table
from cbench.run.run import tell
from cbench.sweep.run import one_cpu
from cbench.sweep.sizes import free_memory
from cbench.workloads import registry as workloads
from quiet.errors import UsageError
from quiet.host.reader import Reader
from quiet.machine.facts import Facts
from quiet.settings.journal import isolated_cpus

TRIALS, QUICK_TRIALS = 200, 40
ROUNDS, QUICK_ROUNDS = 5, 2
LOADS = ("hash", "memory")
"""One that needs only its core, and one that fills the caches and asks for memory."""

LEAST_BUFFER = 32 << 20
MEMORY_SHARE = 1 / 8


@dataclass(frozen=True, slots=True)
class InterfereRequest:
    """The options of `cbench interfere` as they were typed; None: the default."""

    workloads: list[str]
    loads: list[str]
    period_ms: float | None
    busy_ms: float | None
    cpu: str | None
    trials: int | None
    rounds: int | None
    counter: str
    params: list[str]
    seed: int
    timeout: float
    quick: bool


def specs(names: Iterable[str], period_ms: float | None, busy_ms: float | None, buffer: int) -> list[Spec]:
    """The loads by name, each with a buffer of that many bytes where it has one; where they run is not said yet."""
    if (period_ms is None) != (busy_ms is None):
        raise UsageError("--period and --busy belong together: bursts of --busy ms every --period ms")
    period, busy = period_ms or 0.0, busy_ms or 0.0
    if period_ms is not None and not (math.isfinite(period) and 0 < busy < period):
        raise UsageError(f"--busy {busy:g} --period {period:g}: 0 < busy < period, both in milliseconds")
    found = []
    for name in dict.fromkeys(names):
        workload = workloads.find(name)
        settings = {"size": buffer} if any(p.name == "size" for p in workload.parameters) else {}
        found.append(Spec(name, -1, workloads.parameters(workload, settings, False), period, busy))
    return found


def buffer_size(near: Sequence[Cache], free: int) -> int:
    """Bytes of a load's buffer: twice the last-level cache, so that it is emptied, but little of the free memory."""
    wanted = max(LEAST_BUFFER, 2 * max((cache.size or 0 for cache in near), default=0))
    return max(min(wanted, int(free * MEMORY_SHARE)) & ~0xFFF, 4096)


def measure(request: InterfereRequest) -> dict[str, Any]:
    """The report; QuietError for whatever stands in the way."""
    reader = Reader()
    wanted = request.trials if request.trials is not None else QUICK_TRIALS if request.quick else TRIALS
    rounds = request.rounds if request.rounds is not None else QUICK_ROUNDS if request.quick else ROUNDS
    if not 1 <= rounds <= 1000:
        raise UsageError(f"--rounds {rounds}: from 1 to 1,000")
    measurement.options(wanted, "auto", request.counter, request.timeout, False)
    options = measurement.options(interfere.per_visit(wanted, rounds), "auto", request.counter, request.timeout, False)
    isolated = isolated_cpus()
    cpu = one_cpu(request.cpu, isolated)
    found = places(Facts(reader), cpu, os.sched_getaffinity(0))
    buffer = buffer_size(caches(reader, cpu), free_memory(reader))
    loads = specs(request.loads or LOADS, request.period_ms, request.busy_ms, buffer)
    conditions = interfere.conditions(found, loads)
    settings = workloads.parse_settings(request.params)
    with tempfile.TemporaryDirectory(prefix="cbench-") as cache:
        chosen = measurement.find(request.workloads, Path(cache), tell)
        workloads.check_settings(chosen, settings)
        params = [workloads.parameters(workload, settings, request.quick) for workload in chosen]
        for workload, values in zip(chosen, params, strict=True):
            measurement.check_memory(workload, values)
        order = interfere.schedule(len(conditions), rounds, request.seed)
        plan = interfere.InterferePlan(chosen, params, cpu, isolated, options, conditions, order)
        with table.TrialBar() as bar:
            measured = interfere.run(plan, bar.show)
    missing = describe.missing([result for each in measured for visit in each.visits for result in visit])
    differ = [
        line
        for number, workload in enumerate(chosen)
        for line in differing.lines(workload.name, cpu, interfere_report.trials(measured, number))
    ]
    for line in [*missing, *differ]:
        tell(line)
    described = {**describe.describe([cpu], isolated), "missing": missing}
    return interfere_report.interfere_dict(plan, measured, found, described, request.seed)


def show(made: Mapping[str, Any]) -> None:
    render_interfere.interfere(made)
