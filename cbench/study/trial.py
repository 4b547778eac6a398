"""One trial of a study: a command or a workload, run once, and its numbers."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cbench.study import reading
from cbench.study.execute import execute
from cbench.study.model import Study, Test
from cbench.study.store import Ended
from quiet.errors import QuietError

LATE = "not done in time"


def trial(study: Study, number: int, run: int, position: int, environment: Mapping[str, str]) -> Ended:
    """Run test `number` once. Whatever goes wrong with it is in the result's `failure`."""
    test = study.tests[number]
    if test.workload:
        return _workload(test, number, run, position)
    folder = str(Path(study.folder, test.directory))
    begun = time.time_ns()
    try:
        done = execute(test.command, folder, environment, test.timeout_s)
    except OSError as error:
        why = f"could not be started: {error.strerror}"
        return Ended(run, position, number, begun, time.time_ns(), why, None, b"", b"", {}, {})
    values: dict[str, tuple[float, str]] = {}
    failure: str | None = None
    if done.code is None:
        failure = f"{LATE} ({test.timeout_s:g} s)"
    elif done.code:
        failure = f"ended with {done.code}"
    else:
        try:
            values = {metric.name: reading.read(metric, done, folder) for metric in test.metrics}
        except reading.NoNumber as error:
            failure = str(error)
    facts: dict[str, Any] = {"wall_s": done.wall_s, "user_s": done.user_s, "sys_s": done.sys_s}
    if done.cut:
        facts["output_cut"] = done.cut
    return Ended(
        run=run,
        position=position,
        test=number,
        begun_ns=done.begun_ns,
        ended_ns=done.ended_ns,
        failure=failure,
        code=done.code,
        output=done.output,
        errors=done.errors,
        values={} if failure else values,
        facts=facts,
    )


def _workload(test: Test, number: int, run: int, position: int) -> Ended:
    """A single execution in a process of its own, without warming up: what ran before is what is looked for."""
    from cbench import commands

    cpu = min(os.sched_getaffinity(0))
    request = commands.Request(
        workloads=[test.workload],
        trials=1,
        cpus=[str(cpu)],
        warmup="0",
        counter="auto",
        params=[f"{name}={value}" for name, value in test.params.items()],
        quick=False,
        timeout=test.timeout_s,
        trace=False,
    )
    begun = time.time_ns()
    try:
        made = commands.measure(request)
    except QuietError as error:
        return Ended(run, position, number, begun, time.time_ns(), str(error), None, b"", b"", {}, {})
    result = made["results"][0]
    value = result["trials"][0]
    facts = {"cpu": cpu, "counter": result["counter"]["name"], "unit": result["counter"]["unit"]}
    facts["polluted"] = [each["cause"] for each in result["polluted"]]
    values = {metric.name: (float(value), str(value)) for metric in test.metrics}
    return Ended(run, position, number, begun, time.time_ns(), None, 0, b"", b"", values, facts)
