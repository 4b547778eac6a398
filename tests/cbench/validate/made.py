"""Validations with synthetic readings: of a host on which every instrument works, to be spoiled in one place."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from cbench.results import to_json
from cbench.study.instruments.instrument import HostInstrument
from cbench.validate.judge import judged
from cbench.validate.plan import ValidationFacts
from cbench.validate.series import ValidationData, ValidationSeries

N = 40
WORK_S = {"aliquot": 0.5, "competing": 0.5, "perfect": 3.0, "copy": 0.2, "etalon": 10.0}
TICKS = 2.5e9
INSTRUMENTS = (
    HostInstrument("wall", "s", "elapsed time", 1e-9, "CLOCK_MONOTONIC"),
    HostInstrument("user", "s", "CPU time in user mode", 0.004, "ticks"),
    HostInstrument("sys", "s", "CPU time in the kernel", 0.004, "ticks"),
    HostInstrument("perf-elapsed", "s", "elapsed time", 1e-9, "CLOCK_MONOTONIC"),
    HostInstrument("cycles", "cycles", "CPU cycles", None, "counted by the PMU", "no PMU here"),
    HostInstrument("task-clock", "s", "CPU time", 1e-9, "ns"),
    HostInstrument("cpu-clock", "s", "CPU time", 1e-9, "ns"),
    HostInstrument("samples:fp", "samples", "`perf record`", 0.001, "one sample"),
    HostInstrument("ticks", "ticks", "cbench's own counter", None, "one tick"),
)

Spoil = Callable[[dict[tuple[str, str], ValidationSeries]], None]


def plain(workload: str, draw: random.Random) -> ValidationSeries:
    """Trials that are not sampled: CPU time with 1 % of spread, a start of 5 ms around it."""
    values: dict[str, dict[int, float]] = {}
    for run in range(N):
        steady = workload == "etalon"
        work = WORK_S[workload] + (draw.expovariate(1e4) if steady else abs(draw.gauss(0, 0.01)) * WORK_S[workload])
        cpu = work * (2 if workload == "perfect" else 1)
        elapsed = work * (2 if workload == "competing" else 1)
        system = draw.choice((0.0, 0.004))
        row = {"raw_s": elapsed, "monotonic_s": elapsed, "realtime_s": elapsed, "boottime_s": elapsed}
        row |= {"wall": elapsed + 0.006, "perf-elapsed": elapsed + 0.003, "ticks": elapsed * TICKS}
        row |= {"user": cpu + 0.002 - system, "sys": system, "task-clock": cpu + 0.0021, "cpu-clock": cpu + 0.002}
        for name, value in row.items():
            values.setdefault(name, {})[run] = value
    return ValidationSeries(workload, "", values)


def sampled(workload: str, draw: random.Random) -> ValidationSeries:
    values: dict[str, dict[int, float]] = {"samples": {}, "wall": {}}
    for run in range(N):
        cpu = WORK_S[workload] * (2 if workload == "perfect" else 1) * draw.uniform(1, 1.01)
        values["samples"][run] = round(1000 * cpu)
        values["wall"][run] = WORK_S[workload] * (2 if workload == "competing" else 1) * 1.02 + 0.1
    return ValidationSeries(workload, "samples:fp", values)


def validation(spoil: Spoil = lambda _: None, seed: int = 1, **changes: Any) -> Any:
    """The judgment on it."""
    draw = random.Random(seed)
    series = {(name, ""): plain(name, draw) for name in WORK_S}
    series |= {(name, "samples:fp"): sampled(name, draw) for name in WORK_S}
    spoil(series)
    about = ValidationFacts(INSTRUMENTS, 10.0, "tsc")
    trials = N * len(series)
    given: dict[str, Any] = {"trials": trials, "done": trials, "failed": 0, "failures": ()} | changes
    return to_json(judged(ValidationData(about, tuple(series.values()), **given)))
