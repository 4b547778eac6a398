"""The remedy for each cause, or why there is none. One line of knowledge each, first match wins.

A remedy names a knob of `quiet` where there is one (`quiet explain KNOB`), a kernel parameter where only the command
line helps, or neither, and then says in `text` what it comes from and what the user can do. Sources: the kernel's
Documentation/timers/no_hz.rst, Documentation/admin-guide/kernel-per-CPU-kthreads.rst,
Documentation/admin-guide/kernel-parameters.txt, and the functions named.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from quiet.noise.attribute import (
    FIRMWARE,
    HOST,
    HYPERVISOR,
    IDLE,
    IRQS_OFF,
    NOT_SMI,
    OTHER_CPU,
    SCHEDULER,
    STALL,
    UNKNOWN,
    USER_RETURN,
    Cause,
)
from quiet.noise.call_nesting import (
    CALL,
    COUNTED,
    FAULT,
    HRTIMER,
    IRQ,
    NMI,
    PULLED,
    SOFTIRQ,
    THREAD,
    TIMER,
    VECTOR,
    WORK,
)

KNOB, BOOT, USER, NONE = "knob", "boot", "user", "none"


class Remedy(NamedTuple):
    """The remedy for a cause. `how`: a knob, the kernel's command line, the user's own action, or none."""

    kind: str
    pattern: str
    how: str
    what: str  # the knob or the kernel parameter; "" for USER and NONE
    text: str
    still: str = ""  # what it means when it comes although that is in place already
    by: str = ".*"  # who did it, where that makes a difference

    @property
    def sentence(self) -> str:
        """The text, led by the knob or the kernel parameter."""
        return {KNOB: f"knob {self.what}: ", BOOT: f"boot with {self.what}: "}.get(self.how, "") + self.text


def _knob(pattern: str, knob: str, text: str, still: str = "", by: str = ".*") -> Remedy:
    return Remedy("", pattern, KNOB, knob, text, still, by)


def _boot(pattern: str, parameter: str, text: str, still: str = "") -> Remedy:
    return Remedy("", pattern, BOOT, parameter, text, still)


def _user(pattern: str, text: str, by: str = ".*") -> Remedy:
    return Remedy("", pattern, USER, "", text, by=by)


def _none(pattern: str, text: str) -> Remedy:
    return Remedy("", pattern, NONE, "", text)


TICK = "the scheduler's tick; it stops on a nohz_full CPU while one task runs there alone"
TICK_KEPT = (
    "the scheduler's tick; the CPU is nohz_full, and the tick goes on while a second task wants the CPU, a cgroup "
    "limits the task's CPU time (cpu.max), a sched_ext scheduler is loaded, or something else needs it (the report "
    "names it where the kernel does), and once when a task begins"
)
RCU_LEFT = "RCU; its callbacks run elsewhere already (rcu_nocbs), and this is what each CPU has to do itself"

SHOOTDOWNS = r"TLB shootdown.*"
# Works of system_power_efficient_wq and its freezable twin.
POWER_EFFICIENT = (
    "neigh_(periodic|managed)_work|phy_state_machine|phylink_resolve|gc_worker|check_lifetime|do_cache_clean|"
    "disk_events_workfn|regulator_disable_work"
)
UNTRACED = (
    "The kernel traces no event for an exception (a debug trap, a split or bus lock, a machine check), for its work on "
    "the way back to user space, or for a processor that changes its frequency, power or clock state; see knob "
    "cpufreq.limits, and prove firmware or hardware by `quiet noise --prove 10`"
)

_BY_KIND: dict[str, tuple[Remedy, ...]] = {
    HRTIMER: (
        _boot(r"tick_(sched_timer|nohz_handler)|tick_nohz_highres_handler", "nohz_full={cpus}", TICK, TICK_KEPT),
        _knob(r"watchdog_timer_fn", "watchdog.cpus", "the soft lockup detector"),
        _knob(r"sched_rt_period_timer", "rt_throttling", "the real-time bandwidth limit"),
        _user(r"sched_cfs_.*", "a cgroup with a CPU limit (cpu.max) has run here; take the limit away"),
        _knob(r"perf_mux_hrtimer_handler", "perf.mux_interval", "more perf events than counters take turns"),
        _user(r"perf_swevent_hrtimer", "a perf event on this CPU; end the profiler"),
        _knob(r"hrtimer_wakeup", "tasks", "a task slept with its timer on this CPU; it was here when it did"),
        _knob(
            r"posix_timer_fn|it_real_fn|timerfd_tmrproc|alarmtimer_fired",
            "tasks",
            "a task's own timer, started while it was on this CPU; it stays here until it is started elsewhere",
        ),
        _knob(
            r"dl_task_timer",
            "sched.servers",
            "from Linux 6.12 on the fair server keeps time for ordinary tasks on each CPU, from 7.0 on also a server "
            "for tasks of sched_ext; or a deadline task has run here",
        ),
        _none(r"hrtick", "the scheduler's own timer for the task that runs here"),
        _boot(
            r".*",
            "nohz_full={cpus}",
            "a kernel timer that was started on this CPU; those of a nohz_full CPU start elsewhere, unless they are "
            "bound",
            "a kernel timer that belongs to this CPU",
        ),
    ),
    TIMER: (
        _boot(r"clocksource_watchdog", "tsc=nowatchdog", "the check of the time stamp counter, on each CPU in turn"),
        _knob(r"mce_timer_fn", "mce.interval", "polling for corrected machine checks"),
        _boot(
            r"delayed_work_timer_fn",
            "nohz_full={cpus}",
            "a work that was queued on this CPU for later; from Linux 6.9 on a nohz_full CPU has such timers elsewhere",
            "a work that was queued on this CPU for later, for this CPU or by what ran here",
        ),
        _knob(r"process_timeout", "tasks", "a task waited with a time-out on this CPU"),
        _boot(
            r".*",
            "nohz_full={cpus}",
            "a kernel timer that was started on this CPU; housekeeping CPUs run those of a nohz_full CPU, unless they "
            "are bound. From Linux 6.19 on isolation alone keeps them here",
            "a kernel timer that is bound to this CPU, or was due while the CPU had its tick",
        ),
    ),
    PULLED: (
        _boot(
            r".*",
            "nohz_full={cpus}",
            "from Linux 6.9 on a busy CPU runs the timers of idle CPUs, up to 6.18 also one in an isolated partition; "
            "a nohz_full CPU without its tick counts as idle. From Linux 6.19 on the knob cpuset is enough",
            "a busy CPU runs the timers of idle CPUs; this nohz_full CPU had its tick and so counted as busy (the "
            "report names what needs the tick where the kernel does)",
        ),
    ),
    WORK: (
        _knob(r"vmstat_update", "vm.stat_interval", "folding this CPU's memory counters into the global ones"),
        _knob(r"fb_flashcursor", "console.blink", "the blinking cursor of the screen's console"),
        _knob(r"(dbs_work_handler|cs_dbs_.*|od_.*)", "cpufreq.governor", "a frequency governor that samples"),
        _user(
            r"lru_add_drain_per_cpu|drain_local_pages_wq",
            "a program drains every CPU's page lists (drop_caches, memory hotplug, mlockall, compaction)",
        ),
        _user(r"update_pages_handler", "a program changes the size of a trace buffer"),
        _knob(r"toggle_allocation_gate", "kfence", "the kernel's own memory checker (KFENCE) samples an allocation"),
        _boot(
            r"psi_avgs_work",
            "psi=0",
            "every two seconds, the pressure statistics (PSI) of a cgroup whose tasks ran here",
        ),
        _user(
            r"blk_mq_(run|timeout|requeue)_work(_fn)?",
            "a disk's queue that belongs to this CPU has requests; read and write from housekeeping CPUs",
        ),
        _user(
            r"bpf_prog_free_deferred", "a BPF program was freed on this CPU; load and detach programs on another CPU"
        ),
        _boot(
            rf"({POWER_EFFICIENT})",
            "workqueue.power_efficient=1",
            "a work whose queue becomes unbound with this parameter; then the knob workqueue keeps it away",
        ),
        _knob(r".*", "workqueue", "a work of an unbound queue, which can be kept away", by=r"kworker/u.*"),
        _none(
            r".*", "a work that is queued for each CPU by itself, or by what ran here; only what queues it can be ended"
        ),
    ),
    IRQ: (
        _boot(r"\d+ arch_timer", "nohz_full={cpus}", "the timer interrupt, with no timer due", TICK_KEPT),
        _knob(
            r".*",
            "irq",
            "a device's interrupt; the kernel itself places a managed one: isolcpus=managed_irq,{cpus} on its command "
            "line keeps it away where housekeeping CPUs share the queue. A queue of isolated CPUs alone stays silent "
            "only while nothing on these uses the device",
        ),
    ),
    CALL: (
        _knob(SHOOTDOWNS, "thp.khugepaged", "khugepaged collapses pages of what runs here", by=r".*khugepaged.*"),
        _knob(SHOOTDOWNS, "vm.compaction", "kcompactd moves pages of what runs here", by=r".*kcompactd.*"),
        _knob(SHOOTDOWNS, "ksm", "ksmd merges equal pages of what runs here", by=r".*ksmd.*"),
        _knob(SHOOTDOWNS, "damon", "DAMON looks at, or reclaims, pages of what runs here", by=r".*kdamond.*"),
        _user(
            SHOOTDOWNS,
            "memory is short, and kswapd takes pages from what runs here: free memory, or lock it with mlockall(2)",
            by=r".*kswapd.*",
        ),
        _user(
            r"TLB shootdown.*|flush_tlb_func|do_flush_tlb_all|do_kernel_range_flush",
            "another CPU changed page tables that this one uses: threads of the same process elsewhere, or the kernel "
            "freeing mapped memory; run the process on one CPU, or map its memory beforehand. NUMA balancing makes a "
            "process with threads elsewhere do so by itself (knob numa_balancing)",
        ),
        _user(
            r"membarrier.*|ipi_mb|ipi_sync_core|ipi_rseq|ipi_sync_rq_state",
            "membarrier(2) in a process that runs here too",
        ),
        _knob(r"wake-up of a task", "tasks", "another CPU woke a task that was here last or belongs here"),
        _boot(
            r"nohz_full_kick_func",
            "tsc=nowatchdog",
            "another CPU put a timer on this one, so that it has to look at its tick; the check of the time stamp "
            "counter does so on each CPU in turn",
            "another CPU put a timer on this one, or changed what its tick depends on",
        ),
        _user(
            r"code patching|do_sync_core|text_poke.*|__sync_core|do_nothing",
            "the kernel changed its own code: tracing or probes switched, a module loaded, a static key (see the knobs "
            "static_keys.timestamps and kfence)",
        ),
        _knob(
            r"expedited RCU|rcu_exp_handler|rcu_exp_need_qs",
            "rcu.normal",
            "an expedited RCU grace period; rcupdate.rcu_normal=1 on the kernel's command line does the same",
        ),
        _knob(r"trc_read_check_handler", "rcu.tasks_ipi", "RCU Tasks Trace looks at what runs here"),
        _none(r"rcu_barrier_(handler|func)", "a task waits for the RCU callbacks of all CPUs"),
        _user(r"remote_function|__perf_.*|event_function", "perf changes its events on this CPU"),
        _user(
            r"__(rd|wr)msr_.*|__rdmsr.*",
            "a program reads or writes this CPU's model-specific registers (turbostat, monitoring, wrmsr)",
        ),
        _user(r"aperfmperf_.*", "a program reads frequencies (/proc/cpuinfo, scaling_cur_freq)"),
        _user(r"(invalidate_bh_lru|drain_.*)", "a file system or the memory manager empties per-CPU lists"),
        _none(r".*", "another CPU made this one run a function; the same line names the sender if it is known"),
    ),
    VECTOR: (
        _knob(r"reschedule|Rescheduling interrupts", "tasks", "another CPU woke or moved a task to this one"),
        _none(
            r"call_function(_single)?|Function call interrupts",
            "another CPU had this one run a function; Linux 6.4 and newer name it",
        ),
        _none(r"irq_work|IRQ work interrupts", "the kernel's own deferred work: printing, perf, RCU, the tick"),
        _boot(r"tick", "nohz_full={cpus}", TICK, TICK_KEPT),
        _boot(r"local_timer|Timer broadcast interrupts", "nohz_full={cpus}", "the timer interrupt, with no timer due"),
        _user(
            r"thermal_apic",
            "the processor reports heat, a power limit, or another guaranteed frequency (Intel HWP): look at the "
            "cooling, and whether base_frequency has changed",
        ),
        _user(
            r"threshold_apic|deferred_error_apic",
            "the processor reports a corrected error: look at rasdaemon or mcelog",
        ),
        _none(r".*", "an interrupt of the processor itself"),
    ),
    SOFTIRQ: (
        _boot(r"RCU", "rcu_nocbs={cpus}", "RCU callbacks that were queued on this CPU", RCU_LEFT),
        _knob(
            r"NET_RX|NET_TX",
            "irq",
            "network packets whose interrupt came here, or that RPS or RFS sent here (knobs net.rps and net.rfs)",
            "network packets without an interrupt: sent here by RPS or RFS (knobs net.rps and net.rfs), or over "
            "loopback by what runs here",
        ),
        _knob(r"BLOCK|IRQ_POLL", "irq", "disk requests that were completed here"),
        _knob(r"SCHED", "cpuset", "load balancing; a CPU in an isolated partition has none"),
        _knob(r"TASKLET|HI", "irq", "the second half of a device's interrupt"),
        _boot(r"TIMER", "nohz_full={cpus}", "the timer wheel, looked at on each tick"),
        _none(r"HRTIMER", "high-resolution timers of tasks, started on this CPU"),
        _none(r".*", "a softirq of the kernel"),
    ),
    THREAD: (
        _none(
            r"migration/\d+",
            "the kernel stops this CPU to move a task or to change its own code, on 64-bit Arm also for probes",
        ),
        _knob(r"ksoftirqd/\d+", "irq", "softirqs that were too many for the interrupt's end"),
        _knob(r"rcuo[pgs]/\d+", "tasks", "RCU's callbacks, in a thread that may run elsewhere"),
        _boot(r"(rcuc|rcub)/\d+", "rcu_nocbs={cpus}", "RCU's callbacks"),
        _none(
            r"(cpuhp|idle_inject|irq_work|ktimers|backlog_napi)/\d+", "a thread of the kernel that belongs to this CPU"
        ),
        _knob(r"watchdogd?(/\d+)?", "watchdog.cpus", "the watchdog's thread"),
        _knob(r"irq/.*", "irq", "an interrupt's thread; it follows the interrupt"),
        _knob(r"kworker/u.*", "workqueue", "a kworker of unbound queues"),
        _none(r"kworker/.*", "a kworker that belongs to this CPU"),
        _knob(r".*", "cpuset", "a task that may run here; an isolated partition and `quiet run` keep it away"),
    ),
    COUNTED: (
        _knob(r"other timer", "tasks", "a timer of a task that slept here, or of the kernel{naming}"),
        _knob(r".*", "irq", "an interrupt that is not the tick{naming}"),
    ),
    NMI: (
        _knob(
            r".*(perf|watchdog).*",
            "watchdog.nmi",
            "the hard lockup detector, or a profiler that samples on this CPU (perf, or cbench with samples)",
            "a profiler samples on this CPU (perf, or cbench with samples); the hard lockup detector is off",
        ),
        _none(r".*", "the hardware or its firmware wanted attention (errors, a power button)"),
    ),
    FAULT: (_none(r".*", "the detector itself touched memory that was not mapped: raise RLIMIT_MEMLOCK"),),
    HOST: (
        _none(
            HYPERVISOR,
            "the machine that runs this one took the CPU; no setting in here can help: pin the virtual CPUs there",
        ),
        _none(
            FIRMWARE,
            "firmware took the CPU (system management interrupt; the processor counted it): look for power, USB and "
            "fan settings in the firmware's set-up. From Linux 5.17 on cycles counted by Intel's PMU leave it out",
        ),
        _none(NOT_SMI, f"no SMI was counted. {UNTRACED}"),
        _none(r".*", f"whether it was an SMI is not known. {UNTRACED}"),
    ),
    STALL: (
        _none(
            r".*",
            "a hiccup of the processor or memory below one microsecond; neither interrupt nor task was seen in it",
        ),
    ),
    UNKNOWN: (_none(r".*", "the evidence does not say{naming}"),),
    IDLE: (
        _none(
            r"POLL",
            "the CPU polled, so no time goes into leaving a state; in a virtual machine the host may have run others",
        ),
        _knob(
            r".*",
            "idle.cpus",
            "the CPU slept: leaving this idle state takes time; in a virtual machine the host also has to "
            "resume the CPU",
        ),
    ),
    IRQS_OFF: (
        _none(
            r"the idle task|quiet-wake",
            "the timer was due and no interrupt came while nothing else ran: the way out of the idle task, the "
            "firmware (SMI), or in a virtual machine the host",
        ),
        _user(
            r".*",
            "the timer was due, and its interrupt came only after this had run on: it kept interrupts off (a driver or "
            "a system call), or in a virtual machine the host paused the CPU; keep it off this CPU",
        ),
    ),
    OTHER_CPU: (
        _none(
            r".*",
            "the timer was on another CPU, which woke this one: the timers of a nohz_full CPU go to a housekeeping CPU "
            "while timer_migration is 1; what delays that CPU delays this one",
        ),
    ),
    SCHEDULER: (_none(r".*", "the kernel's own way from the wake-up to the thread"),),
    USER_RETURN: (_none(r".*", "the kernel's way out of the system call, and tracing itself"),),
}
REMEDIES = tuple(item._replace(kind=kind) for kind, items in _BY_KIND.items() for item in items)


def remedy(
    cause: Cause,
    cpu: int,
    in_place: Collection[str] = (),
    cpus: str = "",
    absent: Mapping[str, str] | None = None,
    naming: str = "",
) -> Remedy:
    """The remedy for a cause on a CPU. `in_place`: the knobs that are applied and the kernel parameters that are given.

    What is in place already is no remedy (NONE): then the text says what it means that the cause is there all the same.
    Nor is what this host cannot do (`absent`, with the reasons). `cpus`: the list for kernel parameters; default: this
    CPU. `naming`: what would have the kernel name a cause that is only counted, as a clause.
    """
    lacking = absent or {}
    for item in REMEDIES:
        if item.kind != cause.kind or not re.fullmatch(item.pattern, cause.name) or not re.fullmatch(item.by, cause.by):
            continue
        names = {"cpu": cpu, "cpus": cpus or str(cpu), "naming": naming}
        filled = item._replace(what=item.what.format(**names), text=item.text.format(**names))
        name = filled.what.partition("=")[0]
        if name and name in lacking:
            return filled._replace(how=NONE, what="", text=f"{filled.text}; {lacking[name]}")
        if name not in in_place:
            return filled
        what = f"knob {filled.what}" if filled.how == KNOB else filled.what
        named = f"{what} is in place already, and this came all the same: {filled.text}"
        return filled._replace(how=NONE, what="", text=filled.still.format(**names) or named)
    raise LookupError(f"no remedy for the kind {cause.kind}")  # the table ends each kind with ".*"


def stopped_by(name: str) -> list[Remedy]:
    """The causes that a knob or a kernel parameter removes: for `quiet explain`."""
    removers = (item for item in REMEDIES if item.how in (KNOB, BOOT) and item.what.partition("=")[0] == name)
    return [item._replace(text=_of_any(item.text)) for item in removers]


def _of_any(text: str) -> str:
    return text.replace("{cpus}", "LIST").replace("{cpu}", "N").replace("{naming}", "")
