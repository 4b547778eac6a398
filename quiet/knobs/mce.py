"""Machine checks: the kernel's search for corrected hardware errors. x86 only.

Source: arch/x86/x86_64/machinecheck.rst, ABI/testing/sysfs-mce.

Each CPU has these files and all of them show the same number: one write is the write, and the restore.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet.knobs.knob import DesiredValue, Knob, Rule, RuleContext, Skip
from quiet.targets import value_types

_BASE = "/sys/devices/system/machinecheck/machinecheck"
_DOC = "arch/x86/x86_64/machinecheck.rst, ABI/testing/sysfs-mce"


def _first(name: str, quiet: str) -> Rule:
    def rule(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
        # of a CPU that stays: the folder goes with its CPU
        path = f"{_BASE}{min(scene.cpus.housekeeping)}/{name}"
        current = scene.text(path)
        if current is None:
            yield Skip(f"file:{path}", "no machine checks that this kernel can poll (x86 hosts only)")
        else:
            yield DesiredValue(f"file:{path}", quiet, current=current)

    return rule


KNOBS = (
    Knob(
        name="mce.interval",
        title="polling for corrected hardware errors",
        why="a timer on each CPU reads all error banks every five minutes, and far more often after an error",
        doc=_DOC,
        rule=_first("check_interval", "0"),
        kind=value_types.NUMBER,
        targets=f"file:{_BASE}N/check_interval of one CPU: it is one number",
        after=("smt",),
        risk="errors without an interrupt of their own are only seen after the restore, and of many the last one",
    ),
    Knob(
        name="mce.cmci",
        title="interrupts for corrected hardware errors",
        why="a failing memory module interrupts one CPU after the other; yet it is worth knowing",
        doc=_DOC,
        rule=_first("cmci_disabled", "1"),
        kind=value_types.NUMBER,
        targets=f"file:{_BASE}N/cmci_disabled of one CPU: it is one number",
        after=("smt", "mce.interval"),
        risk="the errors that say that this machine's figures are not to be trusted are only found by polling",
    ),
    Knob(
        name="mce.ignore",
        title="corrected hardware errors as a whole",
        why="neither polled for nor told by interrupts",
        doc=_DOC,
        rule=_first("ignore_ce", "1"),
        kind=value_types.NUMBER,
        targets=f"file:{_BASE}N/ignore_ce of one CPU: it is one number",
        after=("smt", "mce.interval", "mce.cmci"),
        risk="the errors that say that this machine's figures are not to be trusted stay unseen until it is restored",
    ),
)
