"""Define knobs for other programs that tune the host and would undo the applied settings.

Sources: tuned(8), power-profiles-daemon, tlp(8), auto-cpufreq, numad(8), thermald(8), irqbalance(1), intel_lpmd(8),
stalld(8), bpftune(8); Documentation/scheduler/sched-ext.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from quiet.knobs import services
from quiet.knobs.knob import Knob, RuleContext, RuleResult, Skip
from quiet.knobs.services import Service
from quiet.machine.facts import Facts
from quiet.targets import systemd, value_types

# When stopped, tuned restores its own saved values; when started again, it saves our values. Therefore it is frozen.
HELD = (Service("tuned-ppd.service tuned.service", "sets governors, sysctls and affinities", held="tuned tuned-ppd"),)
STOPPED = (
    Service("power-profiles-daemon.service", "sets the energy preference that the desktop requests, over D-Bus"),
    Service("auto-cpufreq.service", "sets governor and turbo every few seconds", held="auto-cpufreq"),
    Service(
        "system76-power.service com.system76.PowerDaemon.service",
        "sets governors according to its own profile, over D-Bus",
    ),
    Service("ananicy.service ananicy-cpp.service", "changes tasks' priorities and cgroups", held="ananicy ananicy-cpp"),
    Service("numad.service", "moves tasks and their memory between nodes", held="numad"),
    Service(
        "intel_lpmd.service", "repeatedly moves tasks to few CPUs and partitions the other CPUs", held="intel_lpmd"
    ),
    Service("stalld.service", "gives waiting threads a deadline on the isolated CPUs", held="stalld"),
    Service(
        "scx_loader.service scx.service",
        "loads a sched_ext scheduler, with which nohz_full CPUs keep their tick",
        held="scx_loader",
    ),
    Service("asusd.service", "sets the platform profile and the energy preference of laptops", held="asusd"),
    Service("tccd.service", "sets governors and the energy preference of laptops", held="tccd"),
    Service("nbfc_service.service", "controls fans according to its own tables", held="nbfc_service"),
    Service("bpftune.service", "changes network sysctls according to its observations", held="bpftune"),
    Service("gamemoded.service", "sets governors and priorities for games, over D-Bus", held="gamemoded"),
)
# These units have exited although systemd counts them as active, and stopping them would write other settings.
ONCE = ("tlp.service", "cpupower.service", "cpufrequtils.service", "ktune.service", "laptop-mode.service")
_IRQBALANCE = (Service("irqbalance.service", "moves interrupts back every ten seconds", held="irqbalance"),)
_THERMALD = (Service("thermald.service", "lowers frequencies before the processor does", held="thermald"),)
_LEFT = "a running rival: this profile is not applied while it runs"
_SCHED_EXT = "/sys/kernel/sched_ext"
_ONCE = "it has already set its values, and acts again only on an event"


def _loaded(context: RuleContext) -> Iterator[Skip]:
    """Skip a sched_ext scheduler that neither unit of scx has loaded: quiet does not end the program that loaded it."""
    reader = context.facts.reader
    units = ("scx.service", "scx_loader.service")
    if reader.text(f"{_SCHED_EXT}/state") == "enabled" and not any(systemd.runs(reader, unit) for unit in units):
        name = reader.text(f"{_SCHED_EXT}/root/ops") or "a scheduler"
        reason = (
            f"{name} of sched_ext is loaded, which makes nohz_full CPUs keep their tick: end the program that loaded it"
        )
        yield Skip(f"file:{_SCHED_EXT}/state", reason)


def running(facts: Facts) -> list[str]:
    """The rivals that run, by unit, or by process on hosts without systemd; irqbalance and thermald are excluded.

    The units of ONCE count if they are enabled.
    """
    reader = facts.reader
    if not systemd.booted(reader):
        names = {name for service in (*HELD, *STOPPED) for name in service.held.split()}
        return sorted({task.comm for task in facts.tasks} & names)
    units = [unit for service in (*HELD, *STOPPED) for unit in service.units.split()]
    return [*(unit for unit in units if systemd.runs(reader, unit)), *_once(facts)]


def _once(facts: Facts) -> list[str]:
    states = {unit: (systemd.state(facts.reader, unit) or "").split() for unit in ONCE}
    return [unit for unit, words in states.items() if "enabled" in words and "masked" not in words]


def _rivals(context: RuleContext) -> RuleResult:
    yield from _loaded(context)
    if context.choice == "refuse":
        yield from (Skip(f"unit:{name}", _LEFT) for name in running(context.facts))
        return
    there = systemd.booted(context.facts.reader)
    results = list(services.processes(context, HELD if there else (*HELD, *STOPPED)))
    if there:
        results += services.hold(context, STOPPED)
        results += (Skip(f"unit:{name}", _ONCE) for name in _once(context.facts))
    yield from results or [Skip(services.ALL_UNITS, "no other program that tunes this host runs")]


def _held(context: RuleContext, table: tuple[Service, ...]) -> RuleResult:
    there = systemd.booted(context.facts.reader)
    results = list(services.hold(context, table) if there else services.processes(context, table))
    yield from results or [Skip(f"unit:{table[0].units}", "not running")]


KNOBS = (
    Knob(
        name="rivals",
        gain="no other tasks",
        noticed="tuned and similar daemons are stopped",
        title="other programs that tune the host",
        why="two programs that change the same settings leave the host in a state that neither wants",
        doc="tuned(8); power-profiles-daemon; tlp(8)",
        rule=_rivals,
        kind=value_types.UNIT,
        choices=("quiet", "refuse", "leave"),
        targets="unit:NAME of power-profiles-daemon, auto-cpufreq and similar daemons, stopped and masked; process:PID "
        "of tuned, and on hosts without systemd of all these daemons, frozen by SIGSTOP; with 'refuse' nothing is "
        "applied while one of them runs",
        recheck_on="service",
        refusals=services.REFUSALS,
        restore_last=True,
        risk="a program that calls a frozen daemon waits until the restore",
    ),
    Knob(
        name="irqbalance",
        gain="no interrupts of devices",
        noticed="irqbalance is stopped",
        title="the irqbalance daemon",
        why="irqbalance moves interrupts back every ten seconds",
        doc="irqbalance(1)",
        rule=lambda context: _held(context, _IRQBALANCE),
        kind=value_types.UNIT,
        targets="unit:irqbalance.service, or process:PID (frozen by SIGSTOP) on hosts without systemd",
        recheck_on="service",
        refusals=services.REFUSALS,
        restore_last=True,
    ),
    Knob(
        name="thermald",
        gain="a steady clock frequency",
        noticed="thermald is stopped; the processor throttles later and harder",
        title="the thermal daemon",
        why="thermald lowers frequencies in its own steps before the processor has to",
        doc="thermald(8)",
        rule=lambda context: _held(context, _THERMALD),
        kind=value_types.UNIT,
        targets="unit:thermald.service, or process:PID (frozen by SIGSTOP) on hosts without systemd",
        recheck_on="service",
        refusals=services.REFUSALS,
        restore_last=True,
        risk="the processor still protects itself, but later and harder; a machine without good cooling gets hotter",
    ),
)
