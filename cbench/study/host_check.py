"""What is around a study: the host that it runs on, and `quiet run` where its file asks for a profile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cbench.machine import describe
from cbench.study.model import CALLED, Study
from cbench.to_json import json_object
from quiet import cpulist
from quiet.errors import QuietError
from quiet.host.reader import Reader
from quiet.machine.affinity import isolated_cpus, join
from quiet.settings import journal

INSIDE = "CBENCH_INSIDE_QUIET"
SHORT_S = 0.2
BOOT_ID = "/proc/sys/kernel/random/boot_id"
MOST_DRIFT = 20


def tell(line: str) -> None:
    """A message for the user: stderr, one line."""
    sys.stderr.write(f"cbench: {line}\n")


def inside(study: Study, arguments: list[str], kind: str = "order") -> None:
    """Where a profile is asked for, begin anew as the command of `quiet run`; returns when this is within it.

    This process becomes `quiet run`: so whoever ends it ends that, which ends the study and puts everything back.
    Raises QuietError where what is around is no profile.
    """
    if not study.profile:
        return
    if os.environ.get(INSIDE):
        applied = journal.load(Reader())
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


def described(counter: dict[str, Any] | None) -> dict[str, Any]:
    """The host, and the counter of the study's workloads."""
    isolated = isolated_cpus()
    return {**json_object(describe.describe(sorted(os.sched_getaffinity(0)), isolated)), "counter": counter}


def counter_of(study: Study, wanted: str) -> dict[str, Any] | None:
    """The counter of its workloads, None where it has none. Raises UsageError where it cannot be had."""
    if not any(test.workload for test in study.tests):
        return None
    from cbench.study.workload import choose

    return choose(study, wanted)


def missing_folder(study: Study, kind: str = "order") -> str | None:
    """What to say where the study's commands have no folder to run in."""
    if Path(study.folder).is_dir():
        return None
    return f"{study.folder}: the {CALLED[kind]}'s folder, in which its commands run, is not there"


def glance() -> dict[str, Any]:
    """Boot and load: what costs nothing to look at."""
    return {"boot_id": Reader().text(BOOT_ID) or "", "load": list(os.getloadavg())}


def look(tell: Callable[[str], None]) -> dict[str, Any]:
    """What is stored with a run: boot, load, CPUs, and where a profile is applied what `quiet verify` says of it."""
    reader = Reader()
    size = sum(len(os.fsencode(name)) + len(os.fsencode(value)) + 2 for name, value in os.environ.items())
    found = glance() | {
        "cpus": cpulist.format(frozenset(os.sched_getaffinity(0))),
        "environment_bytes": size,
    }
    if (applied := journal.load(reader)) is not None:
        with _aside(applied.cpus.housekeeping):
            found["quiet"] = _verified()
        if found["quiet"].get("quiet") is False:
            tell("this run begins on a host that is not quiet; what `quiet verify` says is stored with it")
    return found


@contextmanager
def _aside(cpus: frozenset[int]) -> Iterator[None]:
    """Meanwhile this process and what it starts are on other CPUs: on those looked at they would be what is found."""
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


def _verified() -> dict[str, Any]:
    command = [sys.executable, "-P", "-m", "quiet", "verify", "--duration", str(SHORT_S), "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        made = json.loads(done.stdout)
    except ValueError:
        return {"error": done.stderr.strip()[-500:]}
    cpus = (made.get("noise") or {}).get("cpus", {})
    kept = ("gaps", "lost_pct", "max_ns", "unattributed")
    return {
        "quiet": made.get("quiet"),
        "drift": [change.get("target") for change in made.get("drift", [])][:MOST_DRIFT],
        "cpus": {cpu: {name: each[name] for name in kept if name in each} for cpu, each in cpus.items()},
    }
