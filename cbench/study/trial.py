"""One trial of a study: a command, run once, and its numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cbench.study.hooks import AS_IS, Held
from cbench.study.instruments import output
from cbench.study.instruments.perf_data import Samples
from cbench.study.model import Test
from cbench.study.process_attributes import inherited
from cbench.study.run_command import Execution, execute
from cbench.study.store import Ended
from quiet.errors import QuietError, Refused

LATE = "not done in time"


def command(
    test: Test,
    number: int,
    run: int,
    position: int,
    *,
    study_folder: str,
    environment: Mapping[str, str],
    held: Held = AS_IS,
) -> Ended:
    """Run a test's command once. Whatever goes wrong with it is in the result's `failure`.

    Raises Refused where it cannot have the CPUs or addresses that are held for it.
    """
    folder = str(Path(study_folder, test.directory))
    for metric in test.metrics:
        output.prepare(metric, folder)
    begun = time.time_ns()
    try:
        starting = inherited(held.cpus, held.aslr, held.partition)
        variables = {**environment, **held.environment}
        done = execute(test.command, folder, variables, test.timeout_s, test.counts, test.sampling, starting)
    except Refused:
        raise
    except (OSError, QuietError) as error:
        why = f"could not be started: {getattr(error, 'strerror', None) or error}"
        return Ended(run, position, number, begun, time.time_ns(), why, None, b"", b"", {}, {})
    values, failure = _values(test, done, folder)
    facts: dict[str, Any] = {"wall_s": done.wall_s, "user_s": done.user_s, "sys_s": done.sys_s}
    if done.counts:
        facts["counts"] = dict(done.counts)
    if isinstance(done.samples, Samples):
        facts["samples"] = asdict(done.samples)
    if done.cut:
        facts["output_cut"] = done.cut
    facts |= held.facts
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
        values=values,
        facts=facts,
    )


def _values(test: Test, done: Execution, folder: str) -> tuple[dict[str, tuple[float, str]], str | None]:
    """All of its numbers, or why there is none: a trial of which one cannot be read has failed."""
    if done.code is None:
        return {}, f"{LATE} ({test.timeout_s:g} s)"
    if done.code:
        return {}, f"ended with {done.code}"
    try:
        return {metric.name: output.read(metric, done, folder) for metric in test.metrics}, None
    except output.NoNumber as error:
        return {}, str(error)
