"""What a kernel parameter is to the rest: a line of knowledge."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from quiet.machine import virtualization
from quiet.machine.facts import Facts

DOC = "admin-guide/kernel-parameters"
VALUE, FLAG, ISOLATED, HOUSEKEEPING = "value", "flag", "isolated CPUs", "housekeeping CPUs"
Needs = Callable[[Facts], str]


def anywhere(facts: Facts) -> str:
    """No condition."""
    return ""


def x86(facts: Facts) -> str:
    """Why a parameter of x86 does nothing here, "" where it works."""
    text = virtualization.cpuinfo(facts)
    return "" if not text or "vendor_id" in text else "only x86 has it"


def counted(facts: Facts) -> str:
    """Why a parameter for the time stamp counter does nothing here, or should not."""
    clock = facts.reader.text("/sys/devices/system/clocksource/clocksource0/current_clocksource") or "tsc"
    return x86(facts) or ("" if clock.startswith("tsc") else f"the kernel reads {clock} here, not the counter")


def intel(facts: Facts) -> str:
    """Why a parameter for Intel's processors does nothing here."""
    text = virtualization.cpuinfo(facts)
    return "" if not text or "GenuineIntel" in text else "only Intel's processors have it"


def amd(facts: Facts) -> str:
    """Why a parameter for AMD's processors does nothing here."""
    text = virtualization.cpuinfo(facts)
    return "" if not text or "AuthenticAMD" in text or "HygonGenuine" in text else "only AMD's processors have it"


def tickless(facts: Facts) -> str:
    """Why a parameter of kernels with CONFIG_NO_HZ_FULL does nothing here."""
    there = facts.reader.exists("/sys/devices/system/cpu/nohz_full") or not facts.reader.exists("/sys/devices/system")
    return "" if there else "this kernel was built without CONFIG_NO_HZ_FULL"


class BootParameter(NamedTuple):
    """One parameter.

    `takes` says what its value is. `against`: words that contradict it and have to go; `yields`: words beside which it
    is left out, because they are a safeguard; `covered`: words that already do what it does. `adds`: several of its
    words add up, none takes another's place. `runtime`: what does the same without a reboot.
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
    needs: Needs = anywhere

    @property
    def document(self) -> str:
        """The kernel document that describes it."""
        return self.doc or f"{DOC} ({self.name})"

    @property
    def cpus(self) -> bool:
        """Whether it takes a CPU list."""
        return self.takes in (ISOLATED, HOUSEKEEPING)
