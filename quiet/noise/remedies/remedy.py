"""Define a remedy: one entry in the table of remedies, for one cause."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

KNOB, BOOT, USER, NONE = "knob", "boot", "user", "none"


class Remedy(NamedTuple):
    """The remedy for a cause. `how`: KNOB, BOOT (a kernel parameter), USER (the user's own action), or NONE."""

    kind: str
    pattern: str
    how: str
    what: str  # the knob or the kernel parameter; "" for USER and NONE
    text: str
    still: str = ""  # explains the cause if the remedy is already in place
    by: str = ".*"  # pattern of the originator, if it matters

    @property
    def sentence(self) -> str:
        """The text, preceded by the name of the knob or kernel parameter."""
        return {KNOB: f"knob {self.what}: ", BOOT: f"boot with {self.what}: "}.get(self.how, "") + self.text


def knob(pattern: str, name: str, text: str, still: str = "", by: str = ".*") -> Remedy:
    """A remedy that consists of a knob of quiet."""
    return Remedy("", pattern, KNOB, name, text, still, by)


def boot(pattern: str, parameter: str, text: str, still: str = "") -> Remedy:
    """A remedy that consists of a kernel parameter."""
    return Remedy("", pattern, BOOT, parameter, text, still)


def user(pattern: str, text: str, by: str = ".*") -> Remedy:
    """A remedy that the user has to carry out."""
    return Remedy("", pattern, USER, "", text, by=by)


def none(pattern: str, text: str) -> Remedy:
    """An entry for a cause without a remedy; the text gives the reason."""
    return Remedy("", pattern, NONE, "", text)


Remedies = Mapping[str, tuple[Remedy, ...]]
"""The remedies by kind of cause. The first entry that matches (pattern, `by`) applies; the last one always matches."""

TICK = "the scheduler's tick; it stops on a nohz_full CPU while one task runs there alone"
TICK_KEPT = (
    "the scheduler's tick; the CPU is nohz_full, and the tick continues while a second task wants the CPU, a cgroup "
    "limits the task's CPU time (cpu.max), a sched_ext scheduler is loaded, or something else needs it (the report "
    "shows the reason if the kernel names it), and once when a task begins"
)
