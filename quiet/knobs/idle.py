"""Define knobs for idle states (C-states): a deeper state takes longer to wake from.

Source: admin-guide/pm/cpuidle.rst, power/pm_qos_interface.rst, ABI/testing/sysfs-devices-power.

Three interfaces limit idle states. They cannot conflict, because the kernel applies the strictest limit: a limit for
the whole machine, which lasts while a process holds a device open; a limit per CPU; and a switch for each state of each
CPU. The choice "quiet" leaves only the shallowest state that halts the CPU. With "none", an idle CPU polls: it wakes
immediately, but it produces heat, keeps the tick, and slows its sibling thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from quiet.knobs.knob import NOT_HERE, DesiredValue, Knob, RuleContext, RuleResult, Skip, offered
from quiet.machine.facts import CPU
from quiet.targets import value_types

_DEVICE = "cpu_dma_latency"
_GOVERNOR = f"{CPU}/cpuidle/current_governor"
_GOVERNORS = ("menu", "teo", "ladder", "haltpoll")
_NO_STATES = "no cpuidle driver: the kernel only halts idle CPUs, or the hypervisor decides"
_DOC = "admin-guide/pm/cpuidle.rst"
_QOS = f"{_DOC}, power/pm_qos_interface.rst"
_HEAT = "CPUs that do not sleep draw more power and leave less room for turbo"


class _State(NamedTuple):
    number: int
    polls: bool
    latency: int  # wake-up time in microseconds


def _states(context: RuleContext, cpu: int) -> Iterator[_State]:
    base = f"{CPU}/cpu{cpu}/cpuidle"
    for number in context.facts.reader.numbered(base, "state"):
        latency = context.text(f"{base}/state{number}/latency") or ""
        if latency.isdecimal():
            yield _State(number, context.text(f"{base}/state{number}/name") == "POLL", int(latency))


def _limit(context: RuleContext, cpus: Iterable[int]) -> int | None:
    """The maximum wake-up time in microseconds under the profile's choice; None if no CPU has a halting idle state."""
    if context.choice.isdecimal():
        return int(context.choice)
    shallowest = []
    for cpu in cpus:
        halting = [state.latency for state in _states(context, cpu) if not state.polls]
        shallowest += [min(halting)] if halting else []
    # 0 would mean "no limit" to the per-CPU interface and "only poll" to the interface for the whole machine
    return max(1, *shallowest) if shallowest else None


def _machine(context: RuleContext) -> RuleResult:
    target = f"held:{_DEVICE}"
    if not context.facts.reader.exists(f"/sys/class/misc/{_DEVICE}"):
        yield Skip(target, NOT_HERE)
    elif context.choice == "none":
        yield DesiredValue(target, "0", creates=True)
    else:
        # one housekeeping CPU represents all of them: there may be a thousand
        limit = _limit(context, sorted(context.cpus.isolated | {min(context.cpus.housekeeping)}))
        yield Skip(target, _NO_STATES) if limit is None else DesiredValue(target, str(limit), creates=True)


def _isolated(context: RuleContext) -> RuleResult:
    for cpu in sorted(context.cpus.isolated):
        target = f"file:{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us"
        limit = "n/a" if context.choice == "none" else _limit(context, [cpu])
        there = context.facts.reader.exists(target.removeprefix("file:"))
        if limit is None:
            yield Skip(target, _NO_STATES if there else NOT_HERE)
        else:
            yield DesiredValue(target, str(limit), absent=NOT_HERE)


def _switches(context: RuleContext) -> RuleResult:
    for cpu in sorted(context.cpus.isolated):
        limit = _limit(context, [cpu])
        states = list(_states(context, cpu))
        if limit is None or not states:
            yield Skip(f"file:{CPU}/cpu{cpu}/cpuidle", _NO_STATES)
            continue
        for state in states:
            if not state.polls and state.latency > limit:
                why = f"it takes CPU {cpu} {state.latency} us to wake from this state"
                yield DesiredValue(f"file:{CPU}/cpu{cpu}/cpuidle/state{state.number}/disable", "1", why)


def _governor(context: RuleContext) -> RuleResult:
    if context.text(_GOVERNOR) in (None, "none"):
        yield Skip(f"file:{_GOVERNOR}", _NO_STATES)
    else:
        yield offered(context, _GOVERNOR, context.choice, f"{CPU}/cpuidle/available_governors")


KNOBS = (
    Knob(
        name="idle.latency",
        gain="no wake-up from deep idle states",
        noticed="all CPUs draw more power when idle",
        title="deepest idle state of the whole machine",
        why="a CPU that sleeps deeply wakes late, with cold caches, and lets its package slow down",
        doc=_QOS,
        rule=_machine,
        kind=value_types.NUMBER,
        choices=("quiet", "none", "leave"),
        numeric=True,
        path=f"/dev/{_DEVICE}",
        targets=f"held:{_DEVICE}: /dev/{_DEVICE} kept open by a small process; a number is a limit in microseconds",
        after=("smt",),
        refusals={2: "the device file does not exist, as in many containers"},
        risk=f"{_HEAT}; with 'none' every idle CPU polls at full power",
    ),
    Knob(
        name="idle.cpus",
        gain="no wake-up from deep idle states",
        noticed="the isolated CPUs draw more power when idle",
        title="deepest idle state of the isolated CPUs",
        why="the time to wake from a deep state becomes part of the next measurement",
        doc=f"{_QOS}, ABI/testing/sysfs-devices-power",
        rule=_isolated,
        choices=("quiet", "none", "leave"),
        numeric=True,
        targets=f"file:{CPU}/cpuN/power/pm_qos_resume_latency_us; a number is a limit in microseconds, 'none' is "
        "written as n/a",
        after=("smt",),
        risk=f"{_HEAT}; with 'none' an idle isolated CPU polls and keeps its tick",
    ),
    Knob(
        name="idle.states",
        gain="no wake-up from deep idle states",
        title="individual idle states of the isolated CPUs",
        why="a disabled state is never entered, even by a governor that ignores the limit of idle.cpus",
        doc=_DOC,
        rule=_switches,
        kind=value_types.NUMBER,
        choices=("quiet", "leave"),
        numeric=True,
        targets=f"file:{CPU}/cpuN/cpuidle/stateM/disable of states that wake later than the limit; a number is a "
        "limit in microseconds",
        after=("smt",),
        risk=_HEAT,
    ),
    Knob(
        name="idle.governor",
        gain="no wake-up from deep idle states",
        title="governor that selects idle states",
        why="each governor predicts idle times differently; with only one enabled state the governor does not matter",
        doc=_DOC,
        rule=_governor,
        choices=(*_GOVERNORS, "leave"),
        targets=f"file:{_GOVERNOR}",
        after=("smt",),
        refusals={22: "this kernel cannot change the governor at run time"},
    ),
)
