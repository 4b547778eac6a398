"""Hold a CPU's frequency and change it once, by quiet's own means: journal first, then write, then restore.

Both limits of the CPU's cpufreq policy are set to one value, which every governor obeys (kernel document
admin-guide/pm/cpufreq.rst). Whoever is killed meanwhile leaves a journal that `quiet restore` puts back.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from quiet.errors import Incomplete, Refused, UsageError
from quiet.host.host import Host
from quiet.host.lock import locked
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import CPU, Facts
from quiet.settings import engine, journal
from quiet.settings.applied_state import TargetState
from quiet.settings.engine import Write
from quiet.settings.journal import Journal
from quiet.settings.restore import restore
from quiet.targets import registry, value_types

KNOB = "cpufreq.limits"
NAME = "frequency step"
PATIENCE_S = 60
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Change = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Policy:
    """The cpufreq policy of a CPU; frequencies in kHz, `steps` empty where the driver has no fixed ones."""

    number: int
    cpus: frozenset[int]
    driver: str
    low: int
    high: int
    steps: tuple[int, ...]

    @property
    def base(self) -> str:
        return f"{CPU}/cpufreq/policy{self.number}/"

    @property
    def limits(self) -> tuple[str, str]:
        return f"file:{self.base}scaling_max_freq", f"file:{self.base}scaling_min_freq"


def policy(reader: Reader, cpu: int) -> Policy:
    """The policy of this CPU; Refused where its frequency cannot be set."""
    for number, cpus in Facts(reader).policies.items():
        if cpu in cpus:
            return _read(reader, number, cpus)
    why = "no cpufreq driver here: the firmware or the hypervisor sets the frequency"
    raise Refused(f"the frequency of CPU {cpu} cannot be changed: {why}")


def _read(reader: Reader, number: int, cpus: frozenset[int]) -> Policy:
    base = f"{CPU}/cpufreq/policy{number}/"
    texts = [reader.text(base + name) or "" for name in ("cpuinfo_min_freq", "cpuinfo_max_freq")]
    offered = (reader.text(base + "scaling_available_frequencies") or "").split()
    if not all(text.isdecimal() for text in texts) or reader.text(base + "scaling_max_freq") is None:
        raise Refused(f"the frequency of CPU {min(cpus)} cannot be changed: its driver tells no limits")
    steps = tuple(sorted(int(step) for step in offered if step.isdecimal()))
    return Policy(number, cpus, reader.text(base + "scaling_driver") or "", int(texts[0]), int(texts[1]), steps)


def checked(found: Policy, option: str, khz: int | None, default: int) -> int:
    """A frequency that the policy can have; UsageError for another."""
    wanted = default if khz is None else khz
    if found.steps and wanted not in found.steps:
        raise UsageError(f"{option} {wanted}: the driver offers {', '.join(str(s) for s in found.steps)} (kHz)")
    if not found.low <= wanted <= found.high:
        raise UsageError(f"{option} {wanted}: from {found.low} to {found.high} (kHz)")
    return wanted


@contextlib.contextmanager
def held(host: Host, found: Policy, khz: int) -> Iterator[Change]:
    """Inside, the frequency is `khz` until the yielded function sets another; afterwards all is as before.

    Raises Refused where it may not or cannot be set, Incomplete when it could not be put back.
    """
    source = f"cbench step, process {os.getpid()}, {time.monotonic_ns()}"  # nobody else's
    try:
        _begin(host, found, source)
        _set(host, found, khz)
        yield lambda wanted: _set(host, found, wanted)
    finally:
        with undisturbed():
            record = journal.load(host)
            if record is not None and record.source == source:
                _restore(host)


def _begin(host: Host, found: Policy, source: str) -> None:
    with locked(host, PATIENCE_S):
        record = journal.load(host)
        if record is not None:
            raise Refused(f"'{record.profile}' is applied to this host; run `quiet restore` first, then step")
        log = Journal(host)
        try:
            cpus = CpuPartition(frozenset(), Facts(host).online, frozenset(), NAME)
            log.begin(host, NAME, source, cpus, passing=True)
            log.before(
                TargetState(KNOB, target, value_types.NUMBER, registry.get(host, target), None, False)
                for target in found.limits
            )
        finally:
            log.close()


def _set(host: Host, found: Policy, khz: int) -> None:
    writes = [Write(target, str(khz), value_types.NUMBER) for target in found.limits]
    with locked(host, PATIENCE_S):
        log = Journal(host)
        try:
            failures = engine.settle(
                host,
                writes,
                lambda write: log.intent(write.target, write.wanted or ""),
                lambda write, now: log.done(write.target, now),
            )
            log.settled({target: registry.get(host, target) for target in found.limits})
        finally:
            log.close()
    if failures:
        raise Refused(f"{failures[0].write.target.removeprefix('file:')}: {khz} kHz refused: {failures[0].text}")


def _restore(host: Host) -> None:
    outcome = restore(host, patience=PATIENCE_S)
    left = outcome.conflicts + outcome.failures
    if left:
        raise Incomplete(f"not restored: {left[0].target}: {left[0].reason}; see `quiet restore`")


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """No signal ends this process inside."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
