"""Get the verdict of `quiet verify` on this host, if a profile is applied."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from cbench.results import JsonValue
from quiet import QuietError, Reader, applied_state, join

SHORT_S = 0.2
MOST_DRIFT = 20
NO_PROFILE = "no profile is applied, so `quiet verify` has nothing to verify"


@dataclass(frozen=True, slots=True)
class NoiseVerdict:
    """The verdict of `quiet verify`. `quiet`: whether settings and noise match the profile; None if unknown, with the
    reason in `why`. `details`: gaps and drift, in the form that a study stores with each run.
    """

    quiet: bool | None
    why: str
    details: dict[str, JsonValue]


def verified() -> NoiseVerdict | None:
    """Run `quiet verify` for SHORT_S seconds, on the housekeeping CPUs if permitted; None if no profile is applied. The
    verdict is unknown if `quiet verify` prints no result. Raises QuietError if the applied profile cannot be read.
    """
    applied = applied_state(Reader())
    if applied is None:
        return None
    with aside(applied.cpus.housekeeping):
        return _verified()


def verdict() -> tuple[str | None, str]:
    """The verdict as text, or None and the reason why there is none."""
    try:
        found = verified()
    except QuietError as error:
        return None, str(error)
    if found is None or found.quiet is None:
        return None, NO_PROFILE if found is None else found.why
    return "quiet" if found.quiet else "not quiet", ""


@contextmanager
def aside(cpus: frozenset[int]) -> Iterator[None]:
    """A context in which this process and its children run on these CPUs, if permitted, and so do not disturb the
    isolated ones.
    """
    before = frozenset(os.sched_getaffinity(0))
    with suppress(QuietError):
        join(cpus)
    try:
        yield
    finally:
        with suppress(QuietError):
            join(before)


def _verified() -> NoiseVerdict:
    command = [sys.executable, "-P", "-m", "quiet", "verify", "--duration", str(SHORT_S), "--json"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    try:
        result = json.loads(done.stdout)
    except ValueError:
        why = done.stderr.strip()[-500:]
        return NoiseVerdict(None, why or f"quiet verify exited with {done.returncode}", {"error": why})
    cpus = (result.get("noise") or {}).get("cpus", {})
    kept = ("gaps", "lost_pct", "max_ns", "unattributed")
    drift = [change.get("target") for change in result.get("drift", [])][:MOST_DRIFT]
    details: dict[str, JsonValue] = {
        "quiet": result.get("quiet"),
        "drift": drift,
        "cpus": {cpu: {name: each[name] for name in kept if name in each} for cpu, each in cpus.items()},
    }
    return NoiseVerdict(result.get("quiet"), "quiet verify returned no verdict", details)
