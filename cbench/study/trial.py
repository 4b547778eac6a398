"""Run one trial of a study: execute a command once and read its numbers."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from cbench.study.hooks import AS_IS, Held
from cbench.study.instruments.instrument import NoNumber
from cbench.study.instruments.registry import BY_SOURCE
from cbench.study.model import Test
from cbench.study.process.process_attributes import inherited
from cbench.study.process.run_command import Execution, execute
from cbench.study.records import Ended, StoredFacts
from cbench.study.suite.results import last_line
from quiet import QuietError, Refused

LATE = "timed out"


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
    """Run a test's command once.

    Raises Refused if the command cannot get the requested CPUs or address layout. Any other failure is recorded in the
    result's `failure`.
    """
    folder = str(Path(study_folder, test.directory))
    for metric in test.metrics:
        BY_SOURCE[metric.source].prepare(metric.detail, folder)
    begun = time.time_ns()
    try:
        starting = inherited(held.cpus, held.aslr, held.partition)
        variables = {**environment, **held.environment}
        done = execute(test.command, folder, variables, test.timeout_s, test.probes(), starting)
    except Refused:
        raise
    except (OSError, QuietError) as error:
        why = f"could not be started: {getattr(error, 'strerror', None) or error}"
        return Ended(run, position, number, begun, time.time_ns(), why, None, b"", b"", {}, {})
    values, failure = _values(test, done, folder)
    facts: StoredFacts = {"wall_s": done.wall_s, "user_s": done.user_s, "sys_s": done.sys_s}
    groups: dict[str, StoredFacts] = {}
    for reading in done.readings.values():
        for group, items in reading.facts.items():
            groups.setdefault(group, {}).update(items)
    facts |= groups
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
    """Read the metrics. Returns each metric's number with its original text, and None; or {}, and the reason, if the
    trial failed. One unreadable number fails the whole trial.
    """
    if done.code is None:
        return {}, f"{LATE} ({test.timeout_s:g} s)"
    if done.code:
        said = f": {last_line(done)}" if done.errors.strip() else ""
        return {}, f"exited with {done.code}{said}"
    try:
        return {each.name: BY_SOURCE[each.source].read(each.detail, done, folder) for each in test.metrics}, None
    except NoNumber as error:
        return {}, str(error)
