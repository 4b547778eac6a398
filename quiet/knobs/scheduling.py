"""Define knobs for scheduler groups and placement, accounting at context switches, and threads bound to a CPU.

Sources: admin-guide/sysctl/kernel.rst, scheduler/sched-energy.rst, arch/x86/buslock.rst,
admin-guide/kernel-per-CPU-kthreads.rst. Kernel threads bound to an isolated CPU cannot be moved, but can get priority
over the measured work; all others are moved by the knob `tasks`.
"""

from __future__ import annotations

from quiet.knobs.knob import NOT_HERE, DesiredValue, Knob, RuleContext, RuleResult, Skip, derived, one_file
from quiet.targets import value_types
from quiet.targets.cgroup import GROUP, SLICE, group

_SYS = "/proc/sys/kernel/"
_SYSCTL = "admin-guide/sysctl/kernel.rst"
_CLOCK = "/sys/devices/system/clocksource/clocksource0/"
_HYPERVISORS = ("kvm-clock", "hyperv_clocksource_tsc_page", "xen")  # the vDSO also reads these without a system call
_PMUS = "/sys/bus/event_source/devices"
_MUX = "perf_event_mux_interval_ms"
_THREADS = ("ksoftirqd", "rcuc", "ktimers")
_SERVERS = "/sys/kernel/debug/sched"
_BOOKED = (
    "the kernel's admission control for deadline tasks rejects this: tasks have reserved bandwidth (chrt -d), or the "
    "CPUs are already isolated"
)


def _clocksource(context: RuleContext) -> RuleResult:
    path = _CLOCK + "current_clocksource"
    current = context.text(path)
    if current is None:
        yield Skip(f"file:{path}", NOT_HERE)
    elif current in _HYPERVISORS:
        yield Skip(
            f"file:{path}",
            f"{current} is as cheap to read as the TSC, and stays correct when the guest migrates to another machine",
        )
    elif "tsc" in (context.text(_CLOCK + "available_clocksource") or "").split():
        yield DesiredValue(f"file:{path}", "tsc", current=current)
    elif current != "arch_sys_counter":  # arm64's only clock source, equally good
        yield Skip(f"file:{path}", "the kernel does not offer the TSC: it is absent, or the kernel found it unreliable")


def _energy_aware(context: RuleContext) -> RuleResult:
    target = f"file:{_SYS}sched_energy_aware"
    if not context.text(_SYS + "sched_energy_aware"):  # since 6.7, the file exists but reads as empty
        yield Skip(target, "this machine has no energy model")
    else:
        yield DesiredValue(target, "0" if context.choice == "quiet" else context.choice)


def _multiplexing(context: RuleContext) -> RuleResult:
    names = [n for n in context.facts.reader.names(_PMUS) if context.facts.reader.exists(f"{_PMUS}/{n}/{_MUX}")]
    if not names:
        yield Skip(f"file:{_PMUS}/cpu/{_MUX}", "no performance counters here")
    for name in names:
        path = f"{_PMUS}/{name}/{_MUX}"
        current = context.text(path) or ""
        if current == "0":
            continue  # a software PMU, to which 0 could not be written back
        if context.choice != "quiet":
            yield DesiredValue(f"file:{path}", context.choice, current=current)
        elif not current.isdecimal() or int(current) < 1000:
            yield DesiredValue(f"file:{path}", "1000", current=current)


def _servers(context: RuleContext) -> RuleResult:
    for cpu in sorted(context.cpus.isolated):
        target = f"file:{_SERVERS}/fair_server/cpu{cpu}/runtime"
        yield DesiredValue(
            target,
            "0",
            absent="the kernel is older than 6.12, or debugfs is not mounted, locked down, or only for root",
        )
        extensible = f"{_SERVERS}/ext_server/cpu{cpu}/runtime"
        if context.text(extensible) is not None:
            yield DesiredValue(f"file:{extensible}", "0", "tasks of sched_ext have a server of their own")


def _pressure(context: RuleContext) -> RuleResult:
    target = f"cgroup:{group(context.facts.reader)}/cgroup.pressure"
    if context.facts.cgroup[0] != 2:
        yield Skip(target, "only cgroup v2 accounts pressure for each group")
    elif not context.facts.reader.exists("/proc/pressure"):
        yield Skip(target, "this kernel does not account for pressure (CONFIG_PSI, psi=0)")
    else:
        yield DesiredValue(target, "0", creates=True)


def _priority(context: RuleContext) -> RuleResult:
    names = {f"{name}/{cpu}" for name in _THREADS for cpu in context.cpus.isolated}
    threads = [task for task in context.facts.tasks if task.kernel and task.comm in names]
    for task in threads:
        yield DesiredValue(f"sched:{task.tid}", f"fifo {context.choice}", label=task.comm)
    if not threads:
        yield Skip("sched:", "no softirq, RCU or timer threads of the isolated CPUs can be seen")


# Set before the partition is created, because its deadline bandwidth excludes that of its CPUs' servers (from the
# source: dl_server_apply_params, __dl_overflow). On nohz_full= CPUs, Linux 6.12.117 refuses the write both before and
# after the partition is created (seen in the lab).
BEFORE = (
    Knob(
        name="sched.servers",
        gain="no other tasks",
        title="time reserved for ordinary tasks on a CPU with a real-time task",
        why="the fair server arms a timer on a CPU with ordinary tasks, and takes 50 ms of each second from a "
        "real-time task",
        doc="scheduler/sched-deadline.rst (fair server); kernel/sched/debug.c (debugfs)",
        rule=_servers,
        kind=value_types.NUMBER,
        targets=f"file:{_SERVERS}/fair_server/cpuN/runtime and file:{_SERVERS}/ext_server/cpuN/runtime of the isolated "
        "CPUs",
        after=("smt",),
        kernels="since 6.12; ext_server since 7.0",
        effect="none on a nohz_full CPU with one busy task (Linux 6.12.117, emulated): no dl_task_timer in 5 s without "
        "the knob, and the kernel refuses the write",
        refusals={1: "locked down: debugfs is not writable", 16: _BOOKED},
        risk="an ordinary task waits for as long as a real-time task keeps the CPU; debugfs is not a stable "
        "interface, and some kernels of 2025 log a warning at the write",
    ),
)

KNOBS = (
    Knob(
        name="sched.autogroup",
        title="a share of the CPU for each session",
        why="with autogroups, a program's share of a CPU depends on the other tasks of its session",
        doc="sched(7); admin-guide/kernel-parameters.txt (noautogroup)",
        **one_file(_SYS + "sched_autogroup_enabled", "0"),
    ),
    Knob(
        name="sched.energy_aware",
        title="energy-aware placement of tasks",
        why="the scheduler puts tasks on the CPU that saves the most energy, even if this CPU is slower",
        doc=f"{_SYSCTL} (sched_energy_aware), scheduler/sched-energy.rst",
        rule=_energy_aware,
        kind=value_types.NUMBER,
        targets=f"file:{_SYS}sched_energy_aware",
        after=("smt", "cpuset", "cpufreq.governor"),
        refusals={
            95: "this machine cannot do energy-aware scheduling",
            1: "this machine cannot do energy-aware scheduling",
        },
    ),
    Knob(
        name="split_lock",
        gain="repeatable memory behavior",
        noticed="programs with split locks are not slowed down",
        title="throttling of split locks",
        why="'on' slows down a program that locks across two cache lines, so that it disturbs other programs less; "
        "'off' does not slow it down",
        doc=f"{_SYSCTL} (split_lock_mitigate), arch/x86/buslock.rst",
        kernels="since 6.2",
        **derived(
            _SYS + "split_lock_mitigate",
            lambda context, _: "1" if context.choice == "on" else "0",
            "this processor does not detect split locks, or the kernel is older than 6.2",
        ),
        choices=("on", "off", "leave"),
    ),
    Knob(
        name="clocksource",
        noticed="every CPU stops for a moment when the clock source changes",
        title="the kernel's clock",
        why="each read of a clock other than the TSC or a hypervisor's takes a system call and a slow device access",
        doc="timers/timekeeping.rst; kernel/time/clocksource.c (current_clocksource)",
        rule=_clocksource,
        choices=("tsc", "leave"),
        targets=f"file:{_CLOCK}current_clocksource",
        drifts=True,  # the kernel's own watchdog may disable the TSC
        risk="switching stops every CPU for a moment",
    ),
    Knob(
        name="perf.mux_interval",
        noticed="profiles of many events become coarser",
        title="milliseconds between rotations of events that share a counter",
        why="if more events are counted than the PMU has counters, a timer interrupts to rotate them",
        doc="kernel/events/core.c (perf_event_mux_interval_ms)",
        rule=_multiplexing,
        kind=value_types.NUMBER,
        numeric=True,
        targets=f"file:{_PMUS}/PMU/{_MUX} of every PMU",
        risk="another user's profile with many events becomes coarser",
    ),
    Knob(
        name="accounting.sched",
        title="statistics of the scheduler",
        why="updating the statistics takes time at every switch and wake-up of every task",
        doc=f"{_SYSCTL} (sched_schedstats)",
        **one_file(_SYS + "sched_schedstats", "0"),
    ),
    Knob(
        name="accounting.delays",
        title="accounting of each task's waiting times",
        why="the accounting takes time whenever a task waits",
        doc=f"{_SYSCTL} (task_delayacct), accounting/delay-accounting.rst",
        kernels="since 5.14",
        **one_file(_SYS + "task_delayacct", "0"),
    ),
    Knob(
        name="accounting.bpf",
        title="timing of BPF programs",
        why="every run of every BPF program reads the clock twice",
        doc=f"{_SYSCTL} (bpf_stats_enabled)",
        **one_file(_SYS + "bpf_stats_enabled", "0"),
    ),
    Knob(
        name="accounting.stacks",
        title="tracing of the deepest kernel stack",
        why="the tracer checks the stack at every call of a kernel function",
        doc=f"{_SYSCTL} (stack_tracer_enabled), trace/ftrace.rst",
        **one_file(_SYS + "stack_tracer_enabled", "0"),
    ),
    Knob(
        name="accounting.pressure",
        title="pressure accounting of the measured work's groups",
        why="each switch between the group's tasks updates its waiting times, once for each level of the hierarchy",
        doc="admin-guide/cgroup-v2.rst (cgroup.pressure), accounting/psi.rst",
        rule=_pressure,
        kind=value_types.NUMBER,
        targets=f"cgroup:{SLICE}/cgroup.pressure (without systemd: cgroup:{GROUP}), and the file of each run's group",
        after=("smt", "cpuset"),
        needs="cpuset",
        kernels="since 6.1",
        path="/sys/fs/cgroup/quiet.slice/cgroup.pressure",
        refusals={2: 'the kernel is older than 6.1, or the cgroup does not exist because the knob cpuset is "leave"'},
        risk="the host-wide figures continue (only psi=0 at boot ends them); a program that watches the group's "
        "figures sees nothing",
    ),
    Knob(
        name="kthreads.priority",
        title="real-time priority of the isolated CPUs' softirq, RCU and timer threads",
        why="when the measured work is real-time itself, these threads must have a higher priority or never run",
        doc="admin-guide/kernel-per-CPU-kthreads.rst, sched(7)",
        rule=_priority,
        choices=("leave",),
        numeric=True,
        targets="sched:TID of ksoftirqd/N, rcuc/N and ktimers/N of the isolated CPUs",
        path="sched_setscheduler(2)",
        after=("smt", "rt_throttling"),
        refusals={22: "real-time priorities are 1 to 99", 3: "ended during the write"},
        risk="these threads then preempt ordinary work",
    ),
)
