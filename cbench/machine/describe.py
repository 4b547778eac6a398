"""Describe the host for readers of results, and list the limitations of measurements, without changing the host."""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace

from cbench.machine import noise
from cbench.machine.passport import Passport, take
from cbench.model import Result
from cbench.results import LEFT_OUT, JsonValue, json_object
from quiet import Facts, Reader, format_cpus, hypervisor, parse_cpus

CPUS = "/sys/devices/system/cpu"
LATER = {"noise": "not measured here", "counter": "not a property of the host: stored with each series"}
"""The passport facts that the measurement adds, with the reasons why they are still unknown."""


def _text(path: str) -> str:
    return Reader().text(path) or ""


def cpuinfo_field(text: str, *names: str) -> str:
    """The value of the first line of /proc/cpuinfo whose field is one of `names`; "" if there is none."""
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in names:
            return value.strip()
    return ""


def virtual(reader: Reader) -> bool:
    """Whether this host runs under a hypervisor; the same answer as `quiet status` gives."""
    return bool(hypervisor(Facts(reader)))


def governors(cpus: Iterable[int]) -> list[str]:
    """The frequency governors of these CPUs, empty if the host shows none (as in most VMs)."""
    return sorted({_text(f"{CPUS}/cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus} - {""})


def siblings(cpu: int) -> frozenset[int]:
    """The other threads of this CPU's core."""
    return parse_cpus(_text(f"{CPUS}/cpu{cpu}/topology/thread_siblings_list")) - {cpu}


@dataclass(frozen=True, slots=True)
class HostFacts:
    """The host's part of the results. `governor`: None if the host shows none; `quiet`: whether all measured CPUs are
    isolated; `missing`: the limitations of the measurements, None if not determined. `passport`: the facts used to
    compare this result with another, None if not determined.
    """

    cpu: str
    machine: str
    kernel: str
    virtual: bool
    governor: str | None
    isolated_cpus: str
    quiet: bool
    missing: tuple[str, ...] | None = field(default=None, metadata={LEFT_OUT: None})
    passport: Passport | None = field(default=None, metadata={LEFT_OUT: None})


def describe(cpus: Collection[int], isolated: frozenset[int]) -> HostFacts:
    """The host's current facts; the caller adds missing()."""
    found = passport(cpus)
    return HostFacts(
        cpu=found.cpu or platform.machine(),
        machine=platform.machine(),
        kernel=platform.release(),
        virtual=virtual(Reader()),
        governor=", ".join(governors(cpus)) or None,
        isolated_cpus=format_cpus(isolated),
        quiet=bool(isolated) and set(cpus) <= isolated,
        passport=found,
    )


def passport(cpus: Collection[int]) -> Passport:
    """The host's passport, for measurements on `cpus`."""
    cpu = cpuinfo_field(_text("/proc/cpuinfo"), "model name", "CPU part") or platform.machine()
    found = take(Reader(), cpus, cpu)
    return replace(found, unknown={**found.unknown, **LATER})


def to_store(host: HostFacts) -> dict[str, JsonValue]:
    """The host's facts to store with a run, including the verdict of `quiet verify` if a profile is applied. The
    verdict is measured now, so call this function during this process's turn on the isolated CPUs.
    """
    if host.passport is None:
        return json_object(host)
    text, why = noise.verdict()
    unknown = {name: reason for name, reason in host.passport.unknown.items() if name != "noise"}
    passport = replace(host.passport, noise=text, unknown=unknown if text else {**unknown, "noise": why})
    return json_object(replace(host, passport=passport))


def missing(results: Collection[Result]) -> tuple[str, ...]:
    """The limitations of these measurements, one line each, with the remedy where there is one."""
    lines: list[str] = []
    ordinary = sorted({r.cpu for r in results if not r.isolated})
    if ordinary and not any(r.isolated for r in results):
        lines.append("not isolated: to isolate the CPUs, start this with `quiet run -- cbench ...`")
    for cpu in sorted({r.cpu for r in results if r.isolated and siblings(r.cpu)}):
        lines.append(f"CPU {cpu} shares its core with CPU {format_cpus(siblings(cpu))}")
    other = [g for g in governors(r.cpu for r in results) if g != "performance"]
    if other:
        lines.append(f"frequency not fixed (governor {', '.join(other)}): `quiet run` sets performance")
    sessions = [session for result in results for session in result.sessions]
    for text in sorted({session.locked for session in sessions if session.locked != "all"}):
        lines.append(f"memory not fully locked: {text}: raise RLIMIT_MEMLOCK (ulimit -l) or run as root")
    if any(session.addresses != "fixed" and not session.layout.aslr for session in sessions):
        lines.append("addresses random, not fixed: personality(2) is forbidden here, as in some containers")
    for text in sorted({session.interrupts_from for session in sessions} - {"/proc/interrupts"}):
        lines.append(f"interrupts not counted (/proc/interrupts: {text})")
    if os.geteuid() and any(session.counter.name == "cycles:u" for session in sessions):
        lines.append("cycles in the kernel not counted: run as root, or set kernel.perf_event_paranoid=1")
    return tuple(lines)
