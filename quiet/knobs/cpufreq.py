"""Define knobs for CPU frequency: driver, governor, energy preference, turbo and limits, per policy or machine-wide.

Source: admin-guide/pm/cpufreq.rst, intel_pstate.rst and amd-pstate.rst.

The drivers require this order: the energy preference before the governor, because under the governor "performance" the
driver rejects any other preference (EBUSY); turbo before the limits, because switching turbo changes the limits; and
the upper limit before the lower limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from quiet.host.reader import Reader
from quiet.knobs.knob import DesiredValue, Knob, Rule, RuleContext, RuleResult, Skip, offered, one_file
from quiet.machine.facts import CPU, Facts
from quiet.targets import value_types

_BASE = f"{CPU}/cpufreq"
_INTEL, _AMD = f"{CPU}/intel_pstate", f"{CPU}/amd_pstate"
_NO_TURBO = f"{_INTEL}/no_turbo"
_BOOST = f"{_BASE}/boost"
_LIMITS = ("scaling_max_freq", "scaling_min_freq")
_AUTO_SELECT = "auto_select"
_CPPC = (_AUTO_SELECT, "auto_act_window", "energy_performance_preference_val")  # cppc_cpufreq, Linux 6.17
_HERTZ = {"GHz": 1e6, "MHz": 1e3, "kHz": 1}
_MODES = {_INTEL: ("active", "passive"), _AMD: ("active", "passive", "guided")}
_GLOBAL = ("no_turbo", "max_perf_pct", "min_perf_pct", "hwp_dynamic_boost", "energy_efficiency")
_DYNAMIC_EPP = f"{_AMD}/dynamic_epp"
_UNSUPPORTED = "<unsupported>"
_NO_DRIVER = "no cpufreq driver: the frequency is set by the firmware or the hypervisor"


def _policies(context: RuleContext) -> list[int]:
    """The policies of the isolated CPUs; all policies if the profile's choice is "all"."""
    everything = context.choice == "all"
    return [n for n, cpus in context.facts.policies.items() if everything or cpus & context.cpus.isolated]


def _none(context: RuleContext) -> Iterator[Skip]:
    """Yield a skip with the reason if this host has nothing to set."""
    if not context.facts.policies:
        yield Skip(f"file:{_BASE}", _NO_DRIVER)
    elif not _policies(context):
        yield Skip(f"file:{_BASE}", "no policy covers the isolated CPUs")


def _performance(name: str, choices: str) -> Rule:
    """The rule for a per-policy setting that should be "performance"; `choices`: the file that lists its values."""

    def rule(context: RuleContext) -> RuleResult:
        yield from _none(context)
        for number in _policies(context):
            base = f"{_BASE}/policy{number}/"
            yield offered(context, base + name, "performance", base + choices)

    return rule


def _preference(context: RuleContext) -> RuleResult:
    """Set each policy's energy preference.

    On amd-pstate, first disable the dynamic preference, which rejects any other preference (Linux 7.1).
    """
    if context.facts.policies and context.text(_DYNAMIC_EPP) is not None:
        why = "while enabled, the driver sets the preference by the power source, and rejects any other value"
        yield DesiredValue(f"file:{_DYNAMIC_EPP}", "disabled", why, kind=value_types.TEXT)
    yield from _performance("energy_performance_preference", "energy_performance_available_preferences")(context)


def _turbo(context: RuleContext) -> RuleResult:
    wanted = {_NO_TURBO: "1", _BOOST: "0"} | {f"{_BASE}/policy{number}/boost": "0" for number in _policies(context)}
    switches = context.files(wanted) or [f"file:{_BOOST}"]
    no_switch = "no switch for turbo or boost here" if context.facts.policies else _NO_DRIVER
    for target in switches:
        yield DesiredValue(target, wanted[target.removeprefix("file:")], absent=no_switch)


def nominal(context: RuleContext, policy: int) -> int | None:
    """The highest frequency in kHz that does not depend on turbo; None if the driver does not report it."""
    base = f"{_BASE}/policy{policy}/"
    top = _number(context.text(base + "cpuinfo_max_freq"))
    driver = context.text(base + "scaling_driver") or ""
    if driver.startswith("intel"):
        return _number(context.text(base + "base_frequency"))
    cpu = min(context.facts.policies[policy])
    megahertz = _number(context.text(f"{CPU}/cpu{cpu}/acpi_cppc/nominal_freq"))
    if driver.startswith(("amd", "cppc")) and megahertz and top:
        top = min(top, megahertz * 1000)
    frequencies = (context.text(base + "scaling_available_frequencies") or "").split()
    steps = sorted(int(step) for step in frequencies if step.isdecimal())
    if driver == "acpi-cpufreq" and len(steps) > 1 and steps[-1] - steps[-2] == 1000:
        steps.pop()  # the turbo step, which the driver marks by adding 1 MHz (drivers/cpufreq/acpi-cpufreq.c)
    below = [step for step in steps if top and step <= top]
    return below[-1] if below else top


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _limits(context: RuleContext) -> RuleResult:
    yield from _none(context)
    for number in _policies(context):
        auto = f"{_BASE}/policy{number}/{_AUTO_SELECT}"
        if context.text(auto) in ("0", "1"):  # otherwise "<unsupported>"
            why = "with 1 the firmware chooses the frequency and treats the limits as a hint"
            yield DesiredValue(f"file:{auto}", "0", why)
        frequency = _requested(context, number) if context.choice.isdecimal() else nominal(context, number)
        if isinstance(frequency, Skip):
            yield frequency
            continue
        for name in _LIMITS:
            path = f"{_BASE}/policy{number}/{name}"
            if frequency is None:
                yield Skip(
                    f"file:{path}", "the driver does not report the frequency without turbo; use cpufreq.turbo instead"
                )
            else:
                yield DesiredValue(f"file:{path}", str(frequency), absent="this driver does not have this setting")


def _kilohertz(text: str) -> int | None:
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?) ?(GHz|MHz|kHz)", text)
    return round(float(match[1]) * _HERTZ[match[2]]) if match else None


def _requested(context: RuleContext, policy: int) -> int | Skip:
    """The frequency that the profile requests, in kHz; a skip if the hardware cannot reach it."""
    base = f"{_BASE}/policy{policy}/"
    low, high = (_number(context.text(f"{base}cpuinfo_{which}_freq")) for which in ("min", "max"))
    wanted = int(context.choice)
    if low and high and not low <= wanted <= high:
        reason = f"{wanted:,} kHz is not between {low:,} and {high:,} kHz, the range of this CPU"
        return Skip(f"file:{base}scaling_max_freq", reason)
    return wanted


def cpufreq_state(reader: Reader) -> tuple[str, ...]:
    """The targets of every policy's settings, which a change of the governor may reset."""
    return tuple(_every_policy(Facts(reader)))


def _every_policy(facts: Facts) -> Iterator[str]:
    return (target for number in facts.policies for target in policy_state(facts.reader, number))


def policy_state(reader: Reader, number: int) -> Iterator[str]:
    """Yield the targets of one policy's settings, including the writable tunables of its governor."""
    base = f"{_BASE}/policy{number}/"
    governor = reader.text(base + "scaling_governor") or ""
    names = ["scaling_governor", "energy_performance_preference", "boost", *_LIMITS, *_CPPC]
    if governor == "userspace":
        names.append("scaling_setspeed")
    there = (name for name in names if reader.exists(base + name))
    yield from (f"file:{base}{name}" for name in there if reader.text(base + name) != _UNSUPPORTED)
    # a governor's tunables exist only while it is active, per policy or globally
    for folder in (f"{base}{governor}", f"{_BASE}/{governor}"):
        files = reader.names(folder) if governor else []
        yield from (f"file:{folder}/{name}" for name in files if reader.writable(f"{folder}/{name}"))


def _disturbed(context: RuleContext) -> Iterable[str]:
    # switching turbo off lowers these permanently (intel_pstate.rst, store_no_turbo)
    limits = context.files(f"{_INTEL}/{name}" for name in ("min_perf_pct", "max_perf_pct"))
    return [*_every_policy(context.facts), *limits]


def _status(context: RuleContext) -> RuleResult:
    for folder, modes in _MODES.items():
        path = f"{folder}/status"
        current = context.text(path)
        if current is None:
            continue
        if current not in modes:
            yield Skip(f"file:{path}", f"the driver's status is '{current}': another driver may have replaced it")
        elif context.choice not in modes:
            yield Skip(f"file:{path}", f"this driver has no mode '{context.choice}', only {' '.join(modes)}")
        else:
            yield DesiredValue(f"file:{path}", context.choice, current=current)
        return
    yield Skip(f"file:{_INTEL}/status", "neither intel_pstate nor amd_pstate drives this machine")


def _everything(context: RuleContext) -> Iterable[str]:
    """The targets of all settings, because a driver starts with its defaults after a switch."""
    return [*_every_policy(context.facts), *context.files((*(f"{_INTEL}/{name}" for name in _GLOBAL), _BOOST))]


def _with_dynamic_epp(context: RuleContext) -> Iterable[str]:
    """The side effects of switching the dynamic preference, which restarts the driver."""
    return _everything(context) if context.text(_DYNAMIC_EPP) == "enabled" else ()


def _lowest(context: RuleContext) -> RuleResult:
    path = f"{_INTEL}/min_perf_pct"
    current, highest = context.text(path), context.text(f"{_INTEL}/max_perf_pct")
    if current is None or highest is None:
        yield Skip(f"file:{path}", "no intel_pstate here")
    else:
        yield DesiredValue(f"file:{path}", highest, current=current)


_EBUSY = "the driver allows no other preference under the governor 'performance'"
_DOC = "admin-guide/pm/cpufreq.rst, admin-guide/pm/intel_pstate.rst, admin-guide/pm/amd-pstate.rst"
_SCOPE = ("quiet", "all", "leave")

KNOBS = (
    Knob(
        name="cpufreq.driver",
        gain="a steady clock frequency",
        noticed="every CPU runs with the driver's default frequency policy",
        title="mode of the frequency driver",
        why="in active mode the processor chooses frequencies; in passive mode the kernel's governors do",
        doc="admin-guide/pm/intel_pstate.rst, admin-guide/pm/amd-pstate.rst",
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
        risk="every policy restarts from the driver's defaults; quiet records and restores them all",
    ),
    Knob(
        name="cpufreq.epp",
        gain="a steady clock frequency",
        title="energy/performance preference",
        why="the processor itself slows down to save energy unless it is set to prefer performance",
        doc=_DOC,
        rule=_preference,
        choices=_SCOPE,
        targets=f"file:{_BASE}/policyN/energy_performance_preference of the isolated CPUs' policies "
        f"('all': of every policy); file:{_DYNAMIC_EPP}",
        after=("smt", "cpufreq.driver"),
        entangled=_with_dynamic_epp,
        moves="all settings of the driver's policies, if dynamic_epp is switched, which restarts the driver",
        refusals={
            2: "this mode of the driver does not have this setting",
            16: _EBUSY,
            22: "this mode of the driver does not support this value",
        },
    ),
    Knob(
        name="cpufreq.governor",
        gain="a steady clock frequency",
        title="frequency governor",
        why="unlike 'performance', most governors change the frequency with the load",
        doc=_DOC,
        rule=_performance("scaling_governor", "scaling_available_governors"),
        choices=_SCOPE,
        targets=f"file:{_BASE}/policyN/scaling_governor of the isolated CPUs' policies ('all': of every policy)",
        after=("smt", "cpufreq.epp"),
        entangled=_disturbed,
        moves="the policies' limits, energy preference and boost, and the governor's own tunables",
    ),
    Knob(
        name="cpufreq.turbo",
        gain="a steady clock frequency",
        title="turbo and boost",
        why="turbo depends on temperature, on the power supply and on the load of the other cores",
        doc=_DOC,
        rule=_turbo,
        kind=value_types.NUMBER,
        choices=_SCOPE,
        targets=f"file:{_NO_TURBO}, file:{_BOOST}, file:{_BASE}/policyN/boost",
        after=("smt", "cpufreq.governor"),
        entangled=_disturbed,
        moves="the policies' limits, energy preference and boost; min_perf_pct and max_perf_pct of intel_pstate",
        refusals={
            1: "turbo is off in the firmware",
            11: "the driver is switched off",
            22: "this driver cannot switch turbo",
        },
    ),
    Knob(
        name="cpufreq.limits",
        gain="a steady clock frequency",
        title="one fixed frequency",
        why="with equal limits the frequency has one value: the highest that does not need turbo, or the profile's own",
        doc=_DOC,
        rule=_limits,
        kind=value_types.NUMBER,
        choices=_SCOPE,
        numeric=True,
        units=_kilohertz,
        targets=f"file:{_BASE}/policyN/scaling_max_freq and scaling_min_freq of the isolated CPUs' policies ('all': of "
        f"every policy); for cppc_cpufreq also {_AUTO_SELECT}",
        after=("smt", "cpufreq.governor", "cpufreq.turbo"),
        clamps=True,
    ),
    Knob(
        name="cpufreq.min_perf",
        gain="a steady clock frequency",
        noticed="every CPU runs at its highest performance level",
        title="lowest performance level of intel_pstate",
        why="a raised minimum keeps every CPU at the highest allowed level, even if the base frequency is not reported",
        doc="admin-guide/pm/intel_pstate.rst",
        rule=_lowest,
        kind=value_types.NUMBER,
        targets=f"file:{_INTEL}/min_perf_pct (percent, of the whole machine)",
        after=("smt", "cpufreq.driver", "cpufreq.turbo"),
        clamps=True,
        refusals={11: "the driver is switched off"},
        risk="every CPU of the machine draws the power of its highest level when it works",
    ),
    Knob(
        name="cpufreq.hwp_boost",
        gain="a steady clock frequency",
        title="short boosts after waiting for input or output",
        why="a task that has waited for a device runs faster for a moment than a task that has not",
        doc="admin-guide/pm/intel_pstate.rst (hwp_dynamic_boost)",
        **one_file(f"{_INTEL}/hwp_dynamic_boost", "0"),
        after=("smt", "cpufreq.driver"),
        refusals={
            2: "this mode of the driver does not have this setting",
            22: "this mode of the driver does not support this value",
        },
    ),
    Knob(
        name="cpufreq.efficiency",
        gain="a steady clock frequency",
        title="energy-efficient turbo of Kaby Lake and Coffee Lake",
        why="the processor lowers its frequency when it estimates that the work does not benefit from more",
        doc="admin-guide/pm/intel_pstate.rst (energy_efficiency)",
        **one_file(f"{_INTEL}/energy_efficiency", "0"),
        after=("smt", "cpufreq.driver"),
    ),
)
