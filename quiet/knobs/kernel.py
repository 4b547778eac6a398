"""Periodic work of the kernel: watchdogs, timers, balancing, throttling, sampling.

Source: admin-guide/sysctl/kernel.rst.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet import cpulist
from quiet.knobs.knob import DesiredValue, Knob, RuleContext, Skip, derived, moved_away, one_file
from quiet.targets import value_types

_SYS = "/proc/sys/kernel/"
_SYSCTL = "admin-guide/sysctl/kernel.rst"


def _watchdog_cpus(scene: RuleContext, current: str) -> str:
    return cpulist.format(moved_away(scene, cpulist.parse(current)))


def _aslr(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    # "command": `quiet run` switches it off for its command alone, nothing on the host changes
    if scene.choice == "sysctl":
        yield DesiredValue(f"file:{_SYS}randomize_va_space", "0")


KNOBS = (
    Knob(
        name="timer_migration",
        title="timers of isolated CPUs move away",
        why="with 1, a timer armed on an idle or tickless CPU may expire on a housekeeping CPU instead",
        doc=f"{_SYSCTL} (timer_migration)",
        **one_file(_SYS + "timer_migration", "1"),
    ),
    Knob(
        name="watchdog.nmi",
        title="hard-lockup detector",
        why="it interrupts every CPU that is busy and keeps one hardware counter from the measurement",
        doc=f"{_SYSCTL} (nmi_watchdog), admin-guide/lockup-watchdogs.rst",
        **one_file(_SYS + "nmi_watchdog", "0"),
        refusals={95: "no hard-lockup detector here", 524: "no hard-lockup detector here"},
    ),
    Knob(
        name="watchdog.cpus",
        title="CPUs that the lockup detectors watch",
        why="the soft-lockup detector arms a timer and wakes a thread on each CPU of this mask",
        doc=f"{_SYSCTL} (watchdog_cpumask), admin-guide/lockup-watchdogs.rst",
        **derived(_SYS + "watchdog_cpumask", _watchdog_cpus, "this kernel has no lockup detector", value_types.CPULIST),
        after=("smt",),
    ),
    Knob(
        name="numa_balancing",
        title="automatic NUMA balancing",
        why="it unmaps pages to see who uses them: page faults and migrations in the measured work",
        doc=f"{_SYSCTL} (numa_balancing)",
        **one_file(_SYS + "numa_balancing", "0"),
    ),
    Knob(
        name="rt_throttling",
        title="real-time throttling",
        why="a real-time task that never sleeps is taken off its CPU for 50 ms of every second; from Linux 6.12 on the "
        "fair server takes that time instead, except with CONFIG_RT_GROUP_SCHED, and this does not stop it",
        doc="scheduler/sched-rt-group.rst; for the fair server scheduler/sched-deadline.rst and "
        "/sys/kernel/debug/sched/fair_server/cpuN/runtime",
        **one_file(_SYS + "sched_rt_runtime_us", "-1"),
        refusals={
            16: "real-time groups have more time reserved",
            22: "real-time groups have more time reserved",
        },
        risk="with it off, a real-time task that never sleeps can hold a CPU for ever",
    ),
    Knob(
        name="perf.sample_rate",
        title="highest perf sampling rate",
        why="each sample of any profiler on the host is an interrupt",
        doc=f"{_SYSCTL} (perf_event_max_sample_rate)",
        **one_file(_SYS + "perf_event_max_sample_rate", "1"),
        drifts=True,
        refusals={22: "fixed while perf_cpu_time_max_percent is 0 or 100"},
        risk="somebody else's profiler that asks for more samples (perf record -F) fails or gets fewer while it lasts",
    ),
    Knob(
        name="perf.cpu_time",
        title="CPU time that perf sampling may take",
        why="the kernel lowers the sampling rate by itself once sampling takes more than this share",
        doc=f"{_SYSCTL} (perf_cpu_time_max_percent)",
        **one_file(_SYS + "perf_cpu_time_max_percent", "1"),
        entangled=lambda scene: (f"file:{_SYS}perf_event_max_sample_rate",),
        moves="the highest sampling rate",
    ),
    Knob(
        name="aslr",
        title="address-space layout randomisation",
        why="addresses decide alignment and cache sets, so each run would measure another layout",
        doc=f"{_SYSCTL} (randomize_va_space), personality(2)",
        rule=_aslr,
        kind=value_types.NUMBER,
        choices=("command", "sysctl", "leave"),
        targets=f"file:{_SYS}randomize_va_space with 'sysctl'; with 'command' nothing on the host",
        risk="'sysctl' weakens every new process on the host while it lasts",
    ),
)
