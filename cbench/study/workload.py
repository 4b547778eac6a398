"""Run trials of cbench's workloads as `cbench run WORKLOAD --trials 1 --warmup 0` does, each in a separate process.

No trial is discarded, because a study looks for effects of earlier tests. As in every trial of cbench, the workload (or
the share of it that `rewarm_share` determines) is called once, untimed, right before the timed call. The whole study
uses one counter, even after a resume. A trial that cannot use this counter fails, so that numbers from different
counters are never mixed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from cbench._cbench import lib
from cbench.machine import counters, describe
from cbench.machine.cpus import choose_cpus
from cbench.measure import layout, measurement
from cbench.measure.options import measure_options
from cbench.measure.runner import variables
from cbench.model import PLAIN, Workload
from cbench.study.hooks import AS_IS, Held
from cbench.study.model import Study, StudyCounter, Test
from cbench.study.records import Ended, StoredFacts
from cbench.workloads import registry, selection, user_code
from quiet import QuietError, UsageError, isolated_cpus

ISOLATED = 'workloads run on CPUs that are not isolated: set profile = "bench" in [{}] to isolate them (needs root)'
TABLES = {"order": "study", "screen": "screen"}
"""The name of the main table in the file, by the kind of the store."""


def find(test: Test, folder: str) -> Workload:
    """Find a test's workload without compiling user code. Raises UsageError if the workload does not exist."""
    if not user_code.is_user_code(test.workload):
        return registry.find(test.workload)
    path, function = user_code.split(str(Path(folder, test.workload)))
    return Workload(test.workload, function, "", registry.USER_PARAMETERS, library=str(path), enters_kernel=None)


def choose(wanted: str) -> StudyCounter:
    """Select the counter of a study's workloads. Raises UsageError if the counter `wanted` is unavailable."""
    counter, handle = counters.choose(wanted, cpu())
    lib.cb_counter_destroy(handle)
    return StudyCounter(counter.name, counter.unit, counter.why)


def cpu() -> int:
    """The CPU on which workloads are measured, selected as in `cbench run`."""
    return choose_cpus([], isolated_cpus())[0]


class Workloads:
    """The workloads of a study, ready to measure. `kind`: order or screen. `tell` receives each note on the trials only
    once. Raises UsageError for an unusable workload or parameter.
    """

    def __init__(
        self, study: Study, counter: str, cache: Path, tell: Callable[[str], None], kind: str = "order"
    ) -> None:
        self._folder, self._counter, self._cache = study.folder, counter, cache
        self._tell, self._isolated = tell, ISOLATED.format(TABLES[kind])
        self._told: set[str] = set()
        self._cpu = cpu()
        self._ready: dict[str, tuple[Workload, Mapping[str, int]]] = {}
        for test in study.tests:
            if test.workload:
                self._ready[test.name] = self._prepared(test)

    def _prepared(self, test: Test) -> tuple[Workload, Mapping[str, int]]:
        name = str(Path(self._folder, test.workload)) if user_code.is_user_code(test.workload) else test.workload
        workload = selection.find([name], self._cache, self._tell)[0]
        params = registry.parameters(workload, test.params, quick=False)
        selection.check_memory(workload, params)
        return workload, params

    def trial(self, test: Test, number: int, run: int, position: int, held: Held = AS_IS) -> Ended:
        """Run one trial of a workload. Any failure is recorded in the result's `failure`."""
        workload, params = self._ready[test.name]
        plan = layout.SINGLE if held.aslr is None else layout.LayoutPlan(base=replace(PLAIN, aslr=held.aslr))
        options = measure_options(1, "0", self._counter, test.timeout_s, trace=False, plan=plan)
        cpu = self._cpu if held.cpus is None else min(held.cpus)
        isolated = isolated_cpus()
        begun = time.time_ns()
        try:
            with variables(held.environment):
                results = measurement.measure(
                    [workload], [params], [cpu], isolated=isolated, options=options, show=lambda *_: None
                )
        except QuietError as error:
            return Ended(run, position, number, begun, time.time_ns(), str(error), None, b"", b"", {}, held.facts)
        missing = [self._isolated if line.startswith("not isolated") else line for line in describe.missing(results)]
        for line in missing:
            if line not in self._told:
                self._told.add(line)
                self._tell(line)
        trial, counter = results[0].trials[0], results[0].session.counter
        facts: StoredFacts = {
            "cpu": cpu,
            "counter": counter.name,
            "unit": counter.unit,
            "params": dict(params),
            "causes": [cause.text for cause in trial.causes],
            "polluted": trial.polluted,
            "missing": missing,
            **held.facts,
        }
        values = {metric.name: (float(trial.value), str(trial.value)) for metric in test.metrics}
        return Ended(run, position, number, begun, time.time_ns(), None, 0, b"", b"", values, facts)


def check(test: Test, folder: str) -> tuple[str, str] | None:
    """The error in a test's workload, as the key in the study's file and the reason; None if there is no error."""
    try:
        workload = find(test, folder)
    except UsageError as error:
        return "workload", str(error)
    try:
        registry.check_settings([workload], test.params)
        registry.parameters(workload, test.params, quick=False)
    except UsageError as error:
        return "params", str(error).removeprefix("--param ")
    return None
