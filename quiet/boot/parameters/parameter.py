"""Define the type of a kernel parameter in the table of known parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quiet.machine import virtualization
from quiet.machine.facts import Facts

DOC = "admin-guide/kernel-parameters"
VALUE, FLAG, ISOLATED, HOUSEKEEPING = "value", "flag", "isolated CPUs", "housekeeping CPUs"
Needs = Callable[[Facts], str]


def _made_by(markers: tuple[str, ...], reason: str) -> Needs:
    """A function that returns `reason` for processors without any of these markers in /proc/cpuinfo, else ""."""

    def needs(facts: Facts) -> str:
        text = virtualization.cpuinfo(facts)
        return "" if not text or any(marker in text for marker in markers) else reason

    return needs


x86 = _made_by(("vendor_id\t",), "only x86 has it")  # s390x has a line "vendor_id       : IBM/S390"
intel = _made_by(("GenuineIntel",), "only Intel's processors have it")
amd = _made_by(("AuthenticAMD", "HygonGenuine"), "only AMD's processors have it")


def counted(facts: Facts) -> str:
    """Why a parameter for the TSC has no effect on this host, or should not be used; "" if it is useful."""
    clock = facts.reader.text("/sys/devices/system/clocksource/clocksource0/current_clocksource") or "tsc"
    return x86(facts) or ("" if clock.startswith("tsc") else f"the kernel uses the clock {clock} here, not the TSC")


def tickless(facts: Facts) -> str:
    """Why a parameter that requires CONFIG_NO_HZ_FULL has no effect on this host; "" if it has an effect."""
    there = facts.reader.exists("/sys/devices/system/cpu/nohz_full") or not facts.reader.exists("/sys/devices/system")
    return "" if there else "this kernel was built without CONFIG_NO_HZ_FULL"


class BootParameter(NamedTuple):
    """One kernel parameter.

    `takes` describes its value. `against`: words that contradict it and must be removed; `yields`: words that are a
    safeguard, so the parameter is omitted if one is present; `covered`: words that already have the same effect.
    `adds`: several of its words accumulate instead of replacing each other. `runtime`: the setting with the same effect
    that needs no reboot. `needs`: returns why the parameter is useless on a host, "" if it is useful.
    """

    name: str
    why: str
    risk: str = ""
    doc: str = ""
    takes: str = VALUE
    example: str = ""
    against: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    yields: tuple[str, ...] = ()
    adds: bool = False
    runtime: str = ""
    needs: Needs = lambda facts: ""

    @property
    def document(self) -> str:
        """The kernel document that describes this parameter."""
        return self.doc or f"{DOC} ({self.name})"

    @property
    def cpus(self) -> bool:
        """Whether this parameter takes a CPU list."""
        return self.takes in (ISOLATED, HOUSEKEEPING)
