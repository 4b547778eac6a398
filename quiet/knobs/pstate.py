"""What intel_pstate and amd_pstate have for the whole machine, beside the policies of quiet.knobs.cpufreq.

Source: admin-guide/pm/intel_pstate.rst, admin-guide/pm/amd-pstate.rst.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet.knobs.cpufreq import policy_state
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, Skip, one_file
from quiet.machine.facts import CPU
from quiet.targets import value_types

_INTEL, _AMD = f"{CPU}/intel_pstate", f"{CPU}/amd_pstate"
_DOC = "admin-guide/pm/intel_pstate.rst"
_MODES = {_INTEL: ("active", "passive"), _AMD: ("active", "passive", "guided")}
_GLOBAL = ("no_turbo", "max_perf_pct", "min_perf_pct", "hwp_dynamic_boost", "energy_efficiency")


def _status(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    for folder, modes in _MODES.items():
        path = f"{folder}/status"
        current = scene.text(path)
        if current is None:
            continue
        if current not in modes:
            yield Skip(f"file:{path}", f"the driver is '{current}', and another one may be in its place")
        elif scene.choice not in modes:
            yield Skip(f"file:{path}", f"this driver has no mode '{scene.choice}', only {' '.join(modes)}")
        else:
            yield DesiredValue(f"file:{path}", scene.choice, current=current)
        return
    yield Skip(f"file:{_INTEL}/status", "neither intel_pstate nor amd_pstate drives this machine")


def _everything(scene: RuleContext) -> Iterable[str]:
    """A driver that is switched starts from its defaults."""
    for number in scene.facts.policies:
        yield from policy_state(scene.facts.reader, number)
    files = (*(f"{_INTEL}/{name}" for name in _GLOBAL), f"{CPU}/cpufreq/boost")
    yield from (f"file:{path}" for path in files if scene.facts.reader.exists(path))


def _lowest(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    path = f"{_INTEL}/min_perf_pct"
    current, highest = scene.text(path), scene.text(f"{_INTEL}/max_perf_pct")
    if current is None or highest is None:
        yield Skip(f"file:{path}", "no intel_pstate here")
    else:
        yield DesiredValue(f"file:{path}", highest, current=current)


DRIVER = (
    Knob(
        name="cpufreq.driver",
        title="mode of the frequency driver",
        why="in active mode the processor chooses frequencies, in passive mode the kernel's governors do",
        doc=f"{_DOC}, admin-guide/pm/amd-pstate.rst",
        rule=_status,
        choices=("active", "passive", "guided", "leave"),
        targets=f"file:{_INTEL}/status or file:{_AMD}/status",
        after=("smt",),
        entangled=_everything,
        moves="every policy's settings, and the driver's own",
        refusals={
            16: "the driver is busy",
            19: "no such driver is in use",
            22: "this processor does not have the mode",
        },
        risk="every policy starts again from the driver's defaults; all of it is recorded and put back",
    ),
)

KNOBS = (
    Knob(
        name="cpufreq.min_perf",
        title="lowest performance level of intel_pstate",
        why="the level of no CPU goes below the highest one allowed, also where the base frequency is not told",
        doc=_DOC,
        rule=_lowest,
        kind=value_types.NUMBER,
        targets=f"file:{_INTEL}/min_perf_pct (per cent, of the whole machine)",
        after=("smt", "cpufreq.driver", "cpufreq.turbo"),
        clamps=True,
        refusals={11: "the driver is switched off"},
        risk="every CPU of the machine draws the power of its highest level when it works",
    ),
    Knob(
        name="cpufreq.hwp_boost",
        title="short boosts after waiting for input or output",
        why="a task that has waited for a device finds its CPU faster than one that has not",
        doc=f"{_DOC} (hwp_dynamic_boost)",
        **one_file(f"{_INTEL}/hwp_dynamic_boost", "0"),
        after=("smt", "cpufreq.driver"),
        refusals={2: "the driver's mode does not have it", 22: "the driver does not let it be set in this mode"},
    ),
    Knob(
        name="cpufreq.efficiency",
        title="energy-efficient turbo of Kaby and Coffee Lake",
        why="the processor lowers its frequency where it thinks that the work does not gain by it",
        doc=f"{_DOC} (energy_efficiency)",
        **one_file(f"{_INTEL}/energy_efficiency", "0"),
        after=("smt", "cpufreq.driver"),
    ),
)
