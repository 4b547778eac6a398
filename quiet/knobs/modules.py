"""Modules that are known to interrupt: told, never unloaded.

Sources: hwmon/dell-smm-hwmon.rst, driver-api/ipmi.rst, admin-guide/thermal/intel_powerclamp.rst.
"""

from __future__ import annotations

from quiet.knobs.knob import Knob, RuleContext, RuleResult, Skip

# the module, and what it does
_SUGGESTIONS = {
    "dell_smm_hwmon": "each look at the fans enters the firmware (SMM), which stops every CPU meanwhile",
    "iTCO_wdt": "pings the chipset's watchdog, whose expiry is a firmware interrupt (SMI)",
    "sp5100_tco": "pings the chipset's watchdog",
    "ipmi_si": "without an interrupt its thread kipmi polls the management controller; see kipmid_max_busy_us",
    "intel_powerclamp": "can force every CPU to be idle for a share of the time",
    "acpi_pad": "forces CPUs to be idle when the firmware asks for it",
}


def _suggest(scene: RuleContext) -> RuleResult:
    for name, reason in _SUGGESTIONS.items():
        # what is built in has no state, and cannot be unloaded
        if scene.facts.reader.exists(f"/sys/module/{name}/initstate"):
            yield Skip(f"module:{name}", f"{reason}; `modprobe -r {name}` would end that, quiet never does it")


KNOBS = (
    Knob(
        name="modules",
        title="modules that are known to interrupt",
        why="some drivers take time from every CPU, and no mask or setting stops them",
        doc="hwmon/dell-smm-hwmon.rst, driver-api/ipmi.rst, admin-guide/thermal/intel_powerclamp.rst, modprobe(8)",
        rule=_suggest,
        choices=("suggest", "leave"),
        targets="none: what is loaded is named with the skips, and stays loaded",
    ),
)
