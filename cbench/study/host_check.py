"""Describe the host on which a study runs, and run the study within `quiet run` if its file requests a profile."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from cbench.machine import describe, noise
from cbench.results import json_object, to_json
from cbench.study.model import Study, StudyCounter
from cbench.study.records import StoredFacts
from cbench.study.resets import reboot
from quiet import QuietError, Reader, applied_state, format_cpus, isolated_cpus, load_profile

INSIDE = "CBENCH_INSIDE_QUIET"


def inside(study: Study, arguments: list[str], kind: str = "order") -> None:
    """If the study requests a profile, restart this command within `quiet run`; return if it already runs there.

    This process becomes `quiet run`, so a signal that ends the process ends the study and restores every setting.
    Raises QuietError if the variable CBENCH_INSIDE_QUIET is set, but no profile is applied or this process may use CPUs
    that are not isolated.
    """
    inside_profile(study.profile, study.cpus, [kind, *arguments])


def inside_profile(profile: str, cpus: str, arguments: list[str]) -> None:
    """Like inside(), for the command line `cbench ARGUMENTS`. `profile`: "" requires no profile; `cpus`: the CPUs to
    isolate, "" for those that the profile selects.
    """
    if not profile:
        return
    if os.environ.get(INSIDE):
        applied = applied_state(Reader())
        if applied is None or not set(os.sched_getaffinity(0)) <= isolated_cpus():
            raise QuietError(f"{INSIDE} is set, but this command does not run within `quiet run`: unset {INSIDE}")
        return
    load_profile(profile)  # reports an unknown one before anything needs root
    chosen = ["--cpus", cpus] if cpus else []
    same = ["--as", "root"] if os.geteuid() == 0 else []  # even under sudo, because resets need root
    outer = ["-P", "-m", "quiet", "run", "--profile", profile, *chosen, *same, "--"]
    inner = [sys.executable, "-P", "-m", "cbench", *arguments]
    sys.stdout.flush()
    sys.stderr.flush()
    command = [sys.executable, *outer, *inner]
    os.execve(sys.executable, command, {**os.environ, INSIDE: "1"})  # noqa: S606 - quiet run must be the parent


def described(counter: StudyCounter | None) -> StoredFacts:
    """The facts about the host, and about the counter of the study's workloads if there is one."""
    host = json_object(describe.describe(sorted(os.sched_getaffinity(0)), isolated_cpus()))
    return {**host, "counter": to_json(counter)}


def counter_of(study: Study, wanted: str) -> StudyCounter | None:
    """The counter of the study's workloads, None if it has no workloads. Raises UsageError if the counter is
    unavailable.
    """
    if not any(test.workload for test in study.tests):
        return None
    from cbench.study import workload

    return workload.choose(wanted)


def glance() -> StoredFacts:
    """The facts that are cheap to read: the boot ID and the load."""
    return {"boot_id": reboot.boot_id(), "load": [*os.getloadavg()]}


def look(tell: Callable[[str], None]) -> StoredFacts:
    """The facts stored with a run: boot ID, load, CPUs, the size of the environment in bytes and, if a profile is
    applied, the result of `quiet verify`. If the host is not quiet, `tell` receives a message.
    """
    size = sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in os.environ.items())
    facts = glance() | {"cpus": format_cpus(frozenset(os.sched_getaffinity(0))), "environment_bytes": size}
    if (verdict := noise.verified()) is not None:
        facts["quiet"] = verdict.details
        if verdict.quiet is False:
            tell("this run begins on a host that is not quiet; the result of `quiet verify` is stored with the run")
    return facts
