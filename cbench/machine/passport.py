"""Take a host's passport: the facts that must be equal for results to be comparable. Does not change the host."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from typing import Self

from cbench.results import JsonValue
from quiet import QuietError, Reader, applied_state, parse_cpus, redacted_command_line

NO_PROFILE = "none"
_DMI = "/sys/class/dmi/id"
_CPU = "/sys/devices/system/cpu"
_CPUFREQ = "/sys/devices/system/cpu/cpu{}/cpufreq"
_BOOST = "/sys/devices/system/cpu/cpufreq/boost"
_NO_TURBO = "/sys/devices/system/cpu/intel_pstate/no_turbo"
_MOST_WORDS = 5
_NAMED_HOSTS = 3


@dataclass(frozen=True, slots=True)
class Passport:
    """The host's facts as text. Unknown facts are None, and `unknown` maps their names to the reasons.

    `command_line`: the kernel's, with identifiers and unknown values masked as by `quiet record`; `profile`: the
    applied profile, or "none"; `noise`: the verdict of `quiet verify`; `counter`: the event that a test's values count;
    `memory`: rounded to GiB (below 1 GiB, to MiB); `topology`: online CPUs, SMT and NUMA nodes, which depend on
    firmware settings.
    """

    cpu: str | None = None
    microcode: str | None = None
    firmware: str | None = None
    kernel: str | None = None
    command_line: str | None = None
    profile: str | None = None
    noise: str | None = None
    frequency: str | None = None
    counter: str | None = None
    memory: str | None = None
    topology: str | None = None
    unknown: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, host: Mapping[str, JsonValue], counter: str = "") -> Self | None:
        """The passport from a store's facts about a host; a store that is older than passports has only the CPU and the
        kernel. None if nothing is known. Raises ValueError for malformed facts.
        """
        stored = host.get("passport", {name: host[name] for name in ("cpu", "kernel") if host.get(name)})
        reasons = stored.get("unknown", {}) if isinstance(stored, Mapping) else None
        if not isinstance(stored, Mapping) or not isinstance(reasons, Mapping):
            raise ValueError("the host's passport is not an object")
        known = {name: " ".join(str(stored[name]).split()) for name in FACTS if stored.get(name) is not None}
        if counter:
            known["counter"] = counter
        unknown = {str(name): str(why) for name, why in reasons.items() if name not in known}
        return cls(**known, unknown=unknown) if known else None

    def differences(self, other: Passport) -> tuple[str, ...]:
        """The differences between facts that both passports have, such as "kernel 6.1.0 and 6.12.3"."""
        lines = []
        for name in FACTS:
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is None or theirs is None or mine == theirs:
                continue
            if name == "command_line":
                mine, theirs = _shortened([mine, theirs])
            lines.append(f"{name.replace('_', ' ')} {mine} and {theirs}")
        return tuple(lines)

    def lines(self) -> tuple[str, ...]:
        """A line for each fact, with the reason if it is unknown."""
        values = {name: getattr(self, name) or f"unknown: {self.unknown.get(name, 'no reason')}" for name in FACTS}
        return tuple(f"{name.replace('_', ' '):14}{value}" for name, value in values.items())


@dataclass(frozen=True, slots=True)
class UnlikeFact:
    """A fact in which hosts differ: each value, and the hosts that have it; the most frequent value first."""

    fact: str
    values: Mapping[str, tuple[str, ...]]

    def __str__(self) -> str:
        """The fact as text, such as "kernel 6.1.0 (2 hosts) and 6.12.3 (node7)"."""
        said = [
            f"{value} ({', '.join(hosts) if len(hosts) <= _NAMED_HOSTS else f'{len(hosts):,} hosts'})"
            for value, hosts in self.values.items()
        ]
        return f"{self.fact.replace('_', ' ')} {' and '.join(said)}"


def unlike(passports: Mapping[str, Passport]) -> tuple[UnlikeFact, ...]:
    """The facts in which hosts differ, from passports by host name. A host whose fact is unknown is omitted for that
    fact; `noise` is omitted because it is momentary. A pure function, for reports and for checking a fleet before its
    study runs.
    """
    found = []
    for name in FACTS:
        hosts: dict[str, list[str]] = {}
        for host, passport in passports.items():
            if name != "noise" and (value := getattr(passport, name)) is not None:
                hosts.setdefault(value, []).append(host)
        if len(hosts) > 1:
            ordered = sorted(hosts.items(), key=lambda each: (-len(each[1]), each[0]))
            if name == "command_line":
                short = _shortened([value for value, _ in ordered])
                ordered = [(value, names) for value, (_, names) in zip(short, ordered, strict=True)]
            found.append(UnlikeFact(name, {value: tuple(names) for value, names in ordered}))
    return tuple(found)


FACTS = tuple(each.name for each in fields(Passport) if each.name != "unknown")


def take(reader: Reader, cpus: Iterable[int], cpu: str) -> Passport:
    """The passport of a host, for measurements on `cpus`. The caller adds `noise` and `counter`."""
    found = {
        "microcode": _microcode(reader),
        "firmware": _firmware(reader),
        "command_line": _command_line(reader),
        "profile": _profile(reader),
        "frequency": _frequency(reader, sorted(cpus)),
        "memory": _memory(reader),
        "topology": _topology(reader),
    }
    known = {name: value for name, (value, _) in found.items() if value}
    unknown = {name: why for name, (value, why) in found.items() if not value}
    return Passport(cpu=cpu, kernel=reader.text("/proc/sys/kernel/osrelease"), **known, unknown=unknown)


def merged(passports: Sequence[Passport]) -> Passport | None:
    """One passport for several runs of a test, in which a fact that differs contains all of its values; None if there
    is no passport.
    """
    if not passports:
        return None
    values: dict[str, str] = {}
    for name in FACTS:
        known = sorted({value for each in passports if (value := getattr(each, name)) is not None})
        if known:
            values[name] = " or ".join(known)
    unknown = {name: why for each in passports for name, why in each.unknown.items() if name not in values}
    return Passport(**values, unknown=unknown)


def _microcode(reader: Reader) -> tuple[str, str]:
    found = re.findall(r"^microcode\s*:\s*(\S+)", reader.text("/proc/cpuinfo") or "", re.MULTILINE)
    return " or ".join(sorted(set(found))), "/proc/cpuinfo has no microcode"


def _firmware(reader: Reader) -> tuple[str, str]:
    parts = [reader.text(f"{_DMI}/bios_{name}") or "" for name in ("vendor", "version", "date")]
    return " ".join(" ".join(parts).split()), f"no {_DMI}/bios_version"


def _command_line(reader: Reader) -> tuple[str, str]:
    text = reader.text("/proc/cmdline")
    return redacted_command_line(text or "") or ("nothing notable" if text else ""), "/proc/cmdline is not readable"


def _profile(reader: Reader) -> tuple[str, str]:
    try:
        state = applied_state(reader)
    except QuietError as error:
        return "", str(error)
    return (NO_PROFILE if state is None else state.profile), ""


def _frequency(reader: Reader, cpus: Sequence[int]) -> tuple[str, str]:
    """Governor, limits and boost as text, each distinct setting once; and the reason if they are unknown."""
    seen = []
    for cpu in cpus:
        folder = _CPUFREQ.format(cpu)
        limits = [reader.text(f"{folder}/scaling_{name}_freq") for name in ("min", "max")]
        if not all(limit and limit.isdecimal() for limit in limits):
            return "", f"no {folder}/scaling_max_freq"
        low, high = (int(limit or 0) // 1000 for limit in limits)
        span = f"{low} MHz" if low == high else f"{low} to {high} MHz"
        seen.append(f"{reader.text(f'{folder}/scaling_governor') or 'no governor'}, {span}")
    boost = {"1": ", boost on", "0": ", boost off"}.get(reader.text(_BOOST) or "", "")
    turbo = {"0": ", boost on", "1": ", boost off"}.get(reader.text(_NO_TURBO) or "", "")
    return " or ".join(sorted(set(seen))) + (boost or turbo), "no CPU"


def _memory(reader: Reader) -> tuple[str, str]:
    found = re.search(r"^MemTotal:\s*(\d+) kB", reader.text("/proc/meminfo") or "", re.MULTILINE)
    if found is None:
        return "", "/proc/meminfo has no MemTotal"
    size = int(found[1]) / 2**20
    return (f"{size:.0f} GiB" if size >= 1 else f"{size * 1024:.0f} MiB"), ""


def _topology(reader: Reader) -> tuple[str, str]:
    online = reader.text(f"{_CPU}/online")
    if not online:
        return "", f"no {_CPU}/online"
    smt, nodes = reader.text(f"{_CPU}/smt/active"), reader.text("/sys/devices/system/node/online")
    words = [f"{len(parse_cpus(online))} CPUs"]
    words += [f"SMT {'on' if smt == '1' else 'off'}"] if smt in ("0", "1") else []
    words += [f"{len(parse_cpus(nodes))} NUMA nodes"] if nodes else []
    return ", ".join(words), ""


def _shortened(lines: Sequence[str]) -> Sequence[str]:
    """Different command lines without the words that all of them have, and with at most _MOST_WORDS other words each;
    unchanged if that makes two of them equal.
    """
    common = set.intersection(*(set(each.split()) for each in lines))
    short = [_without(each, common) for each in lines]
    return short if len(set(short)) == len(lines) else lines


def _without(line: str, common: Set[str]) -> str:
    words = [word for word in line.split() if word not in common]
    more = f" and {len(words) - _MOST_WORDS} more" if len(words) > _MOST_WORDS else ""
    return f"{' '.join(words[:_MOST_WORDS])}{more}" if words else "nothing more"
