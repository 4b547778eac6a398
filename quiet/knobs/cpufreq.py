"""CPU frequency: governor, energy preference, turbo, limits.

Source: admin-guide/pm/cpufreq.rst, intel_pstate.rst and amd-pstate.rst.

The order is the drivers': the energy preference before the governor (EBUSY under "performance"), turbo before the
limits (switching it moves them), the upper limit before the lower one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from quiet.host.reader import Reader
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, Skip
from quiet.machine.facts import CPU, Facts
from quiet.targets import value_types

_BASE = f"{CPU}/cpufreq"
_NO_TURBO = f"{CPU}/intel_pstate/no_turbo"
_BOOST = f"{_BASE}/boost"
_LIMITS = ("scaling_max_freq", "scaling_min_freq")
_NO_DRIVER = "no cpufreq driver: the frequency is set by the firmware or the hypervisor"


def _policies(scene: RuleContext) -> list[int]:
    """The policies of the isolated CPUs, or of all with the choice "all"."""
    everything = scene.choice == "all"
    return [n for n, cpus in scene.facts.policies.items() if everything or cpus & scene.cpus.isolated]


def _none(scene: RuleContext) -> Iterator[Skip]:
    """Why there is nothing to set, when there is not."""
    if not scene.facts.policies:
        yield Skip(f"file:{_BASE}", _NO_DRIVER)
    elif not _policies(scene):
        yield Skip(f"file:{_BASE}", "no policy covers the isolated CPUs")


def _choice(scene: RuleContext, name: str, offered: str, wanted: str) -> Iterator[DesiredValue | Skip]:
    yield from _none(scene)
    for number in _policies(scene):
        path = f"{_BASE}/policy{number}/{name}"
        current = scene.text(path)
        options = (scene.text(f"{_BASE}/policy{number}/{offered}") or "").split()
        if current is None:
            yield Skip(f"file:{path}", "this driver does not have it")
        elif options and wanted not in options:
            yield Skip(f"file:{path}", f"'{wanted}' is not offered, only {' '.join(options)}")
        else:
            yield DesiredValue(f"file:{path}", wanted, current=current)


def _preference(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    name = "energy_performance_preference"
    return _choice(scene, name, "energy_performance_available_preferences", "performance")


def _governor(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    return _choice(scene, "scaling_governor", "scaling_available_governors", "performance")


def _turbo(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    found = False
    for path, quiet in ((_NO_TURBO, "1"), (_BOOST, "0")):
        if (current := scene.text(path)) is not None:
            found = True
            yield DesiredValue(f"file:{path}", quiet, current=current)
    for number in _policies(scene):
        path = f"{_BASE}/policy{number}/boost"
        if (current := scene.text(path)) is not None:
            found = True
            yield DesiredValue(f"file:{path}", "0", current=current)
    if not found:
        yield Skip(f"file:{_BOOST}", "no switch for turbo or boost here" if scene.facts.policies else _NO_DRIVER)


def nominal(scene: RuleContext, policy: int) -> int | None:
    """The highest frequency in kHz that does not depend on turbo; None when the driver does not tell."""
    base = f"{_BASE}/policy{policy}/"
    top = _number(scene.text(base + "cpuinfo_max_freq"))
    driver = scene.text(base + "scaling_driver") or ""
    if driver.startswith("intel"):
        return _number(scene.text(base + "base_frequency"))
    cpu = min(scene.facts.policies[policy])
    megahertz = _number(scene.text(f"{CPU}/cpu{cpu}/acpi_cppc/nominal_freq"))
    if driver.startswith(("amd", "cppc")) and megahertz and top:
        top = min(top, megahertz * 1000)
    offered = (scene.text(base + "scaling_available_frequencies") or "").split()
    steps = sorted(int(step) for step in offered if step.isdecimal())
    if driver == "acpi-cpufreq" and len(steps) > 1 and steps[-1] - steps[-2] == 1000:
        steps.pop()  # 1 MHz above the next: the step that stands for "turbo" (drivers/cpufreq/acpi-cpufreq.c)
    below = [step for step in steps if top and step <= top]
    return below[-1] if below else top


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def _limits(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    yield from _none(scene)
    for number in _policies(scene):
        frequency = nominal(scene, number)
        for name in _LIMITS:
            path = f"{_BASE}/policy{number}/{name}"
            if frequency is None:
                yield Skip(
                    f"file:{path}",
                    "the driver does not tell the frequency without turbo; turbo off bounds it",
                )
            elif scene.text(path) is None:
                yield Skip(f"file:{path}", "this driver does not have it")
            else:
                yield DesiredValue(f"file:{path}", str(frequency))


def cpufreq_state(reader: Reader) -> tuple[str, ...]:
    """Every writable cpufreq setting that a change of the governor may reset, as targets."""
    return tuple(target for number in Facts(reader).policies for target in policy_state(reader, number))


def policy_state(reader: Reader, number: int) -> Iterator[str]:
    """The writable settings of one policy, as targets; a governor's tunables too."""
    base = f"{_BASE}/policy{number}/"
    governor = reader.text(base + "scaling_governor") or ""
    names = ["scaling_governor", "energy_performance_preference", "boost", *_LIMITS]
    if governor == "userspace":
        names.append("scaling_setspeed")
    yield from (f"file:{base}{name}" for name in names if reader.exists(base + name))
    # a governor's tunables live and die with it, per policy or for all of them
    for folder in (f"{base}{governor}", f"{_BASE}/{governor}"):
        files = reader.names(folder) if governor else []
        yield from (f"file:{folder}/{name}" for name in files if reader.writable(f"{folder}/{name}"))


def _disturbed(scene: RuleContext) -> Iterable[str]:
    for number in scene.facts.policies:
        yield from policy_state(scene.facts.reader, number)
    # switching turbo off lowers these for good (intel_pstate.rst, store_no_turbo)
    for name in ("min_perf_pct", "max_perf_pct"):
        if scene.facts.reader.exists(f"{CPU}/intel_pstate/{name}"):
            yield f"file:{CPU}/intel_pstate/{name}"


_EBUSY = "the driver allows no other preference under the governor 'performance'"
_DOC = "admin-guide/pm/cpufreq.rst, admin-guide/pm/intel_pstate.rst, admin-guide/pm/amd-pstate.rst"
_SCOPE = ("quiet", "all", "leave")

KNOBS = (
    Knob(
        name="cpufreq.epp",
        title="energy/performance preference",
        why="the processor itself slows down for energy unless told to prefer performance",
        doc=_DOC,
        rule=_preference,
        choices=_SCOPE,
        targets=f"file:{_BASE}/policyN/energy_performance_preference of the isolated CPUs' policies",
        after=("smt", "cpufreq.driver"),
        refusals={2: "the driver's mode does not have it", 16: _EBUSY},
    ),
    Knob(
        name="cpufreq.governor",
        title="frequency governor",
        why="any governor but 'performance' changes the frequency with the load",
        doc=_DOC,
        rule=_governor,
        choices=_SCOPE,
        targets=f"file:{_BASE}/policyN/scaling_governor of the isolated CPUs' policies",
        after=("smt", "cpufreq.epp"),
        entangled=_disturbed,
        moves="the policies' limits, energy preference and boost, and the governor's own tunables",
    ),
    Knob(
        name="cpufreq.turbo",
        title="turbo and boost",
        why="turbo depends on temperature, on the supply and on what the other cores do",
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
            22: "not supported here",
        },
    ),
    Knob(
        name="cpufreq.limits",
        title="one fixed frequency",
        why="with equal limits the frequency has one value: the highest that does not need turbo",
        doc=_DOC,
        rule=_limits,
        kind=value_types.NUMBER,
        choices=_SCOPE,
        targets=f"file:{_BASE}/policyN/scaling_max_freq and scaling_min_freq of the isolated CPUs' policies",
        after=("smt", "cpufreq.governor", "cpufreq.turbo"),
        clamps=True,
    ),
)
