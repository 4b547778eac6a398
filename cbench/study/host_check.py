"""The host that a study runs on, and `quiet run` where its file asks for a profile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cbench.machine import describe
from cbench.results import json_object, to_json
from cbench.study.model import Study, StudyCounter
from cbench.study.records import StoredFacts
from cbench.study.resets import reboot
from quiet import QuietError, Reader, applied_state, format_cpus, isolated_cpus, join

INSIDE = "CBENCH_INSIDE_QUIET"
SHORT_S = 0.2
MOST_DRIFT = 20


def inside(study: Study, arguments: list[str], kind: str = "order") -> None:
    """Where the study asks for a profile, restart as the command of `quiet run`; returns when this is within it.

    This process becomes `quiet run`, so a signal that ends it ends the study and restores every setting.
    Raises QuietError within `quiet run` without an applied profile.
    """
    if not study.profile:
        return
    if os.environ.get(INSIDE):
        applied = applied_state(Reader())
        if applied is None or not set(os.sched_getaffinity(0)) <= isolated_cpus():
            raise QuietError(f"{INSIDE} is set, but this does not run within `quiet run`: unset it")
        return
    cpus = ["--cpus", study.cpus] if study.cpus else []
    outer = ["-P", "-m", "quiet", "run", "--profile", study.profile, *cpus, "--"]
    inner = [sys.executable, "-P", "-m", "cbench", kind, *arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, *outer, *inner]
    os.execve(sys.executable, command, {**os.environ, INSIDE: "1"})  # noqa: S606 - quiet run is to be the parent


def described(counter: StudyCounter | None) -> StoredFacts:
    """The host, and the counter of the study's workloads."""
    host = json_object(describe.describe(sorted(os.sched_getaffinity(0)), isolated_cpus()))
    return {**host, "counter": to_json(counter)}


def counter_of(study: Study, wanted: str) -> StudyCounter | None:
    """The counter of its workloads, None where it has none. Raises UsageError where it cannot be had."""
    if not any(test.workload for test in study.tests):
        return None
    from cbench.study import workload

    return workload.choose(wanted)


def glance() -> StoredFacts:
    """Boot and load: what costs nothing to look at."""
    return {"boot_id": reboot.boot_id(), "load": [*os.getloadavg()]}


def look(tell: Callable[[str], None]) -> StoredFacts:
    """What is stored with a run: boot, load, CPUs, and where a profile is applied what `quiet verify` says of it."""
    reader = Reader()
    size = sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in os.environ.items())
    facts = glance() | {"cpus": format_cpus(frozenset(os.sched_getaffinity(0))), "environment_bytes": size}
    if (applied := applied_state(reader)) is not None:
        with _aside(applied.cpus.housekeeping):
            verified = _verified()
        facts["quiet"] = verified
        if verified.get("quiet") is False:
            tell("this run begins on a host that is not quiet; what `quiet verify` says is stored with it")
    return facts


@contextmanager
def _aside(cpus: frozenset[int]) -> Iterator[None]:
    """Run this process and its children on other CPUs for a time: on the verified ones they would be the noise."""
    before = frozenset(os.sched_getaffinity(0))
    try:
        join(cpus)
    except QuietError:  # not permitted: then it is looked at from where this is
        yield
        return
    try:
        yield
    finally:
        join(before)


def _verified() -> StoredFacts:
    command = [sys.executable, "-P", "-m", "quiet", "verify", "--duration", str(SHORT_S), "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        return {"error": done.stderr.strip()[-500:]}
    cpus = (result.get("noise") or {}).get("cpus", {})
    kept = ("gaps", "lost_pct", "max_ns", "unattributed")
    return {
        "quiet": result.get("quiet"),
        "drift": [change.get("target") for change in result.get("drift", [])][:MOST_DRIFT],
        "cpus": {cpu: {name: each[name] for name in kept if name in each} for cpu, each in cpus.items()},
    }
