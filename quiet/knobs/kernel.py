"""Define knobs for the kernel's periodic work (machine checks, watchdogs, timers, balancing, sampling) and for ASLR.

Sources: arch/x86/x86_64/machinecheck.rst, ABI/testing/sysfs-mce, admin-guide/sysctl/kernel.rst,
admin-guide/lockup-watchdogs.rst, dev-tools/kfence.rst.
"""

from __future__ import annotations

from quiet import cpulist
from quiet.knobs.knob import (
    DesiredValue,
    Knob,
    Rule,
    RuleContext,
    RuleResult,
    Skip,
    at_least,
    derived,
    moved_away,
    one_file,
)
from quiet.targets import value_types

_MCE = "/sys/devices/system/machinecheck/machinecheck"
_MCE_DOC = "arch/x86/x86_64/machinecheck.rst, ABI/testing/sysfs-mce"
_SYS = "/proc/sys/kernel/"
_SYSCTL = "admin-guide/sysctl/kernel.rst"
_HUNG = "/proc/sys/kernel/hung_task_timeout_secs"
_STALLED = "/sys/module/workqueue/parameters/watchdog_thresh"
_KFENCE = "/sys/module/kfence/parameters/"
_EDAC = "/sys/module/edac_core/parameters/edac_mc_poll_msec"
_HOUR = 3_600_000  # milliseconds


def _machine_check(name: str, quiet: str) -> Rule:
    def rule(context: RuleContext) -> RuleResult:
        # use a CPU that stays online: the directory disappears with its CPU
        target = f"file:{_MCE}{min(context.cpus.housekeeping)}/{name}"
        yield DesiredValue(target, quiet, absent="no machine checks that this kernel can poll (x86 hosts only)")

    return rule


def _aslr(context: RuleContext) -> RuleResult:
    # "command": `quiet run` disables it only for its command; nothing on the host changes
    if context.choice == "sysctl":
        yield DesiredValue(f"file:{_SYS}randomize_va_space", "0")


def _sampling(context: RuleContext) -> RuleResult:
    path = _KFENCE + "sample_interval"
    if context.text(path) not in (None, "0") and not context.facts.reader.exists(_KFENCE + "deferrable"):
        # kernels that have the parameter `deferrable` can also enable KFENCE again
        yield Skip(f"file:{path}", "this kernel (before Linux 5.18) could not switch it on again")
    else:
        yield DesiredValue(f"file:{path}", "0", absent="this kernel has no KFENCE")


KNOBS = (
    Knob(
        name="mce.interval",
        noticed="corrected hardware errors are reported after the restore",
        title="polling for corrected hardware errors",
        why="a timer on each CPU reads all error banks every five minutes, and far more often after an error",
        doc=_MCE_DOC,
        rule=_machine_check("check_interval", "0"),
        kind=value_types.NUMBER,
        targets=f"file:{_MCE}N/check_interval of one CPU; all CPUs share the value",
        after=("smt",),
        risk="errors that raise no interrupt are only reported after the restore, and if there are several, only the "
        "last one",
    ),
    Knob(
        name="mce.cmci",
        noticed="corrected hardware errors are detected by polling only",
        title="interrupts for corrected hardware errors",
        why="a failing memory module interrupts one CPU after the other",
        doc=_MCE_DOC,
        rule=_machine_check("cmci_disabled", "1"),
        kind=value_types.NUMBER,
        targets=f"file:{_MCE}N/cmci_disabled of one CPU; all CPUs share the value",
        after=("smt", "mce.interval"),
        risk="some errors that make this machine's results untrustworthy are only detected by polling",
    ),
    Knob(
        name="mce.ignore",
        noticed="corrected hardware errors are not reported",
        title="all handling of corrected hardware errors",
        why="with 1, the kernel neither polls for corrected errors nor takes interrupts for them",
        doc=_MCE_DOC,
        rule=_machine_check("ignore_ce", "1"),
        kind=value_types.NUMBER,
        targets=f"file:{_MCE}N/ignore_ce of one CPU; all CPUs share the value",
        after=("smt", "mce.interval", "mce.cmci"),
        risk="errors that make this machine's results untrustworthy stay undetected until the restore",
    ),
    Knob(
        name="timer_migration",
        title="migration of timers to busy or housekeeping CPUs",
        why="with 1, a high-resolution timer armed on an idle or tickless CPU may expire on a housekeeping CPU instead",
        doc=f"{_SYSCTL} (timer_migration)",
        **one_file(_SYS + "timer_migration", "1"),
        kernels="since 6.9 only for hrtimers: timers of the timer wheel are queued locally, and any busy CPU may run "
        "them (6.9 to 6.18: also an isolated CPU without nohz_full=)",
        risk="a sleep or timeout of a program on a tickless CPU expires on another CPU, which then interrupts the "
        "tickless one, so the program wakes later",
    ),
    Knob(
        name="watchdog.nmi",
        noticed="CPUs that hang are not reported",
        title="hard-lockup detector",
        why="the detector interrupts every busy CPU and occupies one hardware counter",
        doc=f"{_SYSCTL} (nmi_watchdog), admin-guide/lockup-watchdogs.rst",
        **one_file(_SYS + "nmi_watchdog", "0"),
        refusals={95: "no hard-lockup detector here", 524: "no hard-lockup detector here"},
    ),
    Knob(
        name="watchdog.cpus",
        noticed="the lockup detectors do not watch the isolated CPUs",
        title="CPUs that the lockup detectors watch",
        why="the soft-lockup detector arms a timer and wakes a thread on each CPU of this mask",
        doc=f"{_SYSCTL} (watchdog_cpumask), admin-guide/lockup-watchdogs.rst",
        **derived(
            _SYS + "watchdog_cpumask",
            lambda context, now: cpulist.format(moved_away(context, cpulist.parse(now))),
            "this kernel has no lockup detector",
            value_types.CPULIST,
        ),
        after=("smt",),
    ),
    Knob(
        name="numa_balancing",
        gain="repeatable memory behavior",
        noticed="pages stay on their NUMA node",
        title="automatic NUMA balancing",
        why="balancing unmaps pages to detect their users, which causes faults and migrations in the measured work",
        doc=f"{_SYSCTL} (numa_balancing)",
        **one_file(_SYS + "numa_balancing", "0"),
    ),
    Knob(
        name="rt_throttling",
        noticed="a real-time task that never sleeps can hold a CPU",
        title="real-time throttling",
        why="a real-time task that never sleeps is taken off its CPU for 50 ms of every second; since Linux 6.12, "
        "without CONFIG_RT_GROUP_SCHED, the fair server takes this time, and only the knob sched.servers stops it",
        doc="scheduler/sched-rt-group.rst; for the fair server scheduler/sched-deadline.rst and "
        "/sys/kernel/debug/sched/fair_server/cpuN/runtime",
        **one_file(_SYS + "sched_rt_runtime_us", "-1"),
        kernels="until 6.11 for real-time tasks; since 6.12, without CONFIG_RT_GROUP_SCHED, only for the admission of "
        "deadline tasks",
        refusals={
            16: "deadline tasks or real-time groups have reserved more time than this value allows",
            22: "real-time groups have reserved more time than this value allows",
        },
        risk="without throttling, a real-time task that never sleeps can hold a CPU forever; -1 also ends admission "
        "control of SCHED_DEADLINE, and the kernel rejects the original value while later admitted tasks exceed it",
    ),
    Knob(
        name="perf.sample_rate",
        noticed="profilers sample less often",
        title="highest perf sampling rate",
        why="each sample of any profiler on the host is an interrupt",
        doc=f"{_SYSCTL} (perf_event_max_sample_rate)",
        **one_file(_SYS + "perf_event_max_sample_rate", "1"),
        drifts=True,
        refusals={22: "fixed while perf_cpu_time_max_percent is 0 or 100"},
        risk="until the restore, a profiler that requests more samples (perf record -F) fails or gets fewer samples",
    ),
    Knob(
        name="perf.cpu_time",
        title="CPU time that perf sampling may take",
        why="the kernel lowers the sampling rate by itself once sampling takes more than this share",
        doc=f"{_SYSCTL} (perf_cpu_time_max_percent)",
        **one_file(_SYS + "perf_cpu_time_max_percent", "1"),
        entangled=lambda context: (f"file:{_SYS}perf_event_max_sample_rate",),
        moves="the highest sampling rate",
    ),
    Knob(
        name="aslr",
        gain="repeatable memory behavior",
        title="address-space layout randomization",
        why="addresses determine alignment and cache sets, so each run would otherwise measure a different layout",
        doc=f"{_SYSCTL} (randomize_va_space), personality(2)",
        rule=_aslr,
        kind=value_types.NUMBER,
        choices=("command", "sysctl", "leave"),
        targets=f"file:{_SYS}randomize_va_space with 'sysctl'; with 'command' nothing on the host",
        risk="'sysctl' weakens the security of every new process on the host until the restore",
    ),
    Knob(
        name="watchdog.soft",
        noticed="CPUs that hang are not reported",
        title="soft-lockup detector",
        why="the detector arms a timer and wakes a thread every few seconds on each CPU that it watches",
        doc="admin-guide/sysctl/kernel.rst (soft_watchdog), admin-guide/lockup-watchdogs.rst",
        rule=lambda context: [DesiredValue("lockup:soft", "0", absent="this kernel has no soft-lockup detector")],
        kind=value_types.NUMBER,
        targets="lockup:soft (/proc/sys/kernel/soft_watchdog)",
        path="/proc/sys/kernel/soft_watchdog",
        after=("watchdog.nmi", "watchdog.cpus"),
        risk="a CPU that hangs in the kernel is not reported until the restore",
    ),
    Knob(
        name="watchdog.hung_tasks",
        noticed="hung tasks are not reported",
        title="check for hung tasks",
        why="khungtaskd checks every task of the host every two minutes",
        doc="admin-guide/sysctl/kernel.rst (hung_task_timeout_secs)",
        **one_file(_HUNG, "0", "this kernel does not check for hung tasks"),
        risk="tasks that hang in the kernel are not reported until the restore",
    ),
    Knob(
        name="watchdog.workqueue",
        title="check for stalled workqueues",
        why="a timer checks every worker pool twice a minute",
        doc="admin-guide/kernel-parameters.txt (workqueue.watchdog_thresh)",
        **one_file(_STALLED, "0", "this kernel does not check for stalled workqueues"),
    ),
    Knob(
        name="kfence",
        title="sampling of memory errors (KFENCE)",
        why="KFENCE samples an allocation ten times a second; a kernel that uses a static key for it interrupts all "
        "CPUs each time",
        doc="dev-tools/kfence.rst (kfence.sample_interval)",
        kernels="since 5.12; can be switched on again since 5.18",
        rule=_sampling,
        kind=value_types.NUMBER,
        targets=f"file:{_KFENCE}sample_interval",
        refusals={22: "KFENCE has found an error and stays off until the next boot"},
    ),
    Knob(
        name="edac.poll",
        noticed="corrected memory errors are reported later",
        title="milliseconds between checks for corrected memory errors",
        why="drivers without an interrupt for errors read the memory controllers' registers every second",
        doc="driver-api/edac.rst; drivers/edac/edac_mc_sysfs.c (edac_mc_poll_msec)",
        **at_least(_EDAC, _HOUR, "no EDAC driver is loaded"),
        risk="corrected memory errors are reported later",
    ),
)
