"""What is known of each cause: what would remove it, or why nothing can. One line of knowledge each, first match wins.

A remedy names a knob of `quiet` where there is one (`quiet explain KNOB`), a kernel parameter where only the command
line helps, or neither, and then says in `text` what it comes from and what the user can do. Sources: the kernel's
Documentation/timers/no_hz.rst, Documentation/admin-guide/kernel-per-CPU-kthreads.rst,
Documentation/admin-guide/kernel-parameters.txt, and the functions named.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from quiet.noise.attribute import HOST, HYPERVISOR, STALL, UNKNOWN, Cause
from quiet.noise.call_nesting import CALL, COUNTED, FAULT, HRTIMER, IRQ, NMI, SOFTIRQ, THREAD, TIMER, VECTOR, WORK

KNOB, BOOT, USER, NONE = "knob", "boot", "user", "none"


class Remedy(NamedTuple):
    """What removes a cause. `how` says where: a knob, the kernel's command line, the user's own doing, or nowhere."""

    kind: str
    pattern: str
    how: str
    what: str  # the knob or the kernel parameter; "" for USER and NONE
    text: str
    still: str = ""  # what it means when it comes although that is in place already
    by: str = ".*"  # who did it, where that makes a difference


TICK = "the scheduler's tick; it stops on a nohz_full CPU while one task runs there alone"
TICK_KEPT = (
    "the scheduler's tick; the CPU is nohz_full, and the tick goes on while a second task wants the CPU or something "
    "else needs it (the report says what, where the kernel tells), and once when a task begins"
)
RCU_LEFT = "RCU; its callbacks run elsewhere already (rcu_nocbs), and this is what each CPU has to do itself"

SHOOTDOWNS = r"TLB shootdown.*"

REMEDIES = (
    # timers
    Remedy(
        HRTIMER,
        r"tick_(sched_timer|nohz_handler)|tick_nohz_highres_handler",
        BOOT,
        "nohz_full={cpus}",
        TICK,
        TICK_KEPT,
    ),
    Remedy(HRTIMER, r"watchdog_timer_fn", KNOB, "watchdog.cpus", "the soft lockup detector"),
    Remedy(HRTIMER, r"sched_rt_period_timer", KNOB, "rt_throttling", "the real-time bandwidth limit"),
    Remedy(HRTIMER, r"sched_cfs_.*", USER, "", "a cgroup with a CPU limit (cpu.max) has run here; take the limit away"),
    Remedy(
        HRTIMER, r"perf_mux_hrtimer_handler", KNOB, "perf.mux_interval", "more perf events than counters take turns"
    ),
    Remedy(
        HRTIMER,
        r"perf_swevent_hrtimer",
        USER,
        "",
        "somebody's perf event on this CPU; end the profiler",
    ),
    Remedy(
        HRTIMER, r"hrtimer_wakeup", KNOB, "tasks", "a task slept with its timer on this CPU; it was here when it did"
    ),
    Remedy(
        HRTIMER,
        r"posix_timer_fn|it_real_fn|timerfd_tmrproc|alarmtimer_fired",
        KNOB,
        "tasks",
        "a task's own timer, started while it was on this CPU; it stays here until it is started elsewhere",
    ),
    Remedy(
        HRTIMER,
        r"dl_task_timer",
        USER,
        "",
        "a deadline task has run here, or from Linux 6.12 on the fair server keeps time for ordinary tasks: "
        "echo 0 > /sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime",
    ),
    Remedy(HRTIMER, r"hrtick", NONE, "", "the scheduler's own timer for the task that runs here"),
    Remedy(
        HRTIMER,
        r".*",
        BOOT,
        "nohz_full={cpus}",
        "a kernel timer that was started on this CPU; those of a nohz_full CPU start elsewhere, unless they are bound",
        "a kernel timer that belongs to this CPU",
    ),
    Remedy(
        TIMER,
        r"clocksource_watchdog",
        BOOT,
        "tsc=nowatchdog",
        "the check of the time stamp counter, on each CPU in turn",
    ),
    Remedy(TIMER, r"mce_timer_fn", KNOB, "mce.interval", "polling for corrected machine checks"),
    Remedy(
        TIMER,
        r"delayed_work_timer_fn",
        BOOT,
        "nohz_full={cpus}",
        "a work that was queued on this CPU for later; from Linux 6.9 on a nohz_full CPU has such timers elsewhere",
        "a work that was queued on this CPU for later, for this CPU or by what ran here",
    ),
    Remedy(TIMER, r"process_timeout", KNOB, "tasks", "a task waited with a time-out on this CPU"),
    Remedy(TIMER, r".*", NONE, "", "a kernel timer of something that ran on this CPU; it stays where it was started"),
    # work
    Remedy(WORK, r"vmstat_update", KNOB, "vm.stat_interval", "folding this CPU's memory counters into the global ones"),
    Remedy(WORK, r"fb_flashcursor", KNOB, "console.blink", "the blinking cursor of the screen's console"),
    Remedy(WORK, r"(dbs_work_handler|cs_dbs_.*|od_.*)", KNOB, "cpufreq.governor", "a frequency governor that samples"),
    Remedy(
        WORK,
        r"lru_add_drain_per_cpu|drain_local_pages_wq",
        USER,
        "",
        "somebody drains every CPU's page lists (drop_caches, memory hotplug, mlockall, compaction)",
    ),
    Remedy(WORK, r"update_pages_handler", USER, "", "somebody changes the size of a trace buffer"),
    Remedy(WORK, r".*", KNOB, "workqueue", "a work of an unbound queue, which can be kept away", by=r"kworker/u.*"),
    Remedy(
        WORK,
        r".*",
        NONE,
        "",
        "a work that is queued for each CPU by itself, or by what ran here; only what queues it can be ended",
    ),
    # interrupts of devices
    Remedy(IRQ, r"\d+ arch_timer", BOOT, "nohz_full={cpus}", "the timer interrupt, with no timer due", TICK_KEPT),
    Remedy(
        IRQ,
        r".*",
        KNOB,
        "irq",
        "a device's interrupt; a managed one needs isolcpus=managed_irq,domain,{cpus} on the kernel's command line",
    ),
    # from other CPUs
    Remedy(
        CALL, SHOOTDOWNS, KNOB, "thp.khugepaged", "khugepaged collapses pages of what runs here", by=r".*khugepaged.*"
    ),
    Remedy(CALL, SHOOTDOWNS, KNOB, "vm.compaction", "kcompactd moves pages of what runs here", by=r".*kcompactd.*"),
    Remedy(CALL, SHOOTDOWNS, KNOB, "ksm", "ksmd merges equal pages of what runs here", by=r".*ksmd.*"),
    Remedy(
        CALL,
        r"TLB shootdown.*|flush_tlb_func|do_flush_tlb_all|do_kernel_range_flush",
        USER,
        "",
        "another CPU changed page tables that this one uses: threads of the same process elsewhere, or the kernel "
        "freeing mapped memory; run the process on one CPU, or map its memory beforehand",
    ),
    Remedy(
        CALL,
        r"membarrier.*|ipi_mb|ipi_sync_core|ipi_rseq|ipi_sync_rq_state",
        USER,
        "",
        "membarrier(2) in a process that runs here too",
    ),
    Remedy(CALL, r"wake-up of a task", KNOB, "tasks", "another CPU woke a task that was here last or belongs here"),
    Remedy(
        CALL,
        r"nohz_full_kick_func",
        BOOT,
        "tsc=nowatchdog",
        "another CPU put a timer on this one, so that it has to look at its tick; the check of the time stamp counter "
        "does so on each CPU in turn",
        "another CPU put a timer on this one, or changed what its tick depends on",
    ),
    Remedy(
        CALL,
        r"code patching|do_sync_core|text_poke.*|__sync_core",
        USER,
        "",
        "the kernel changed its own code: tracing or probes switched, a module loaded, a static key (see the knobs "
        "static_keys.timestamps and kfence)",
    ),
    Remedy(
        CALL,
        r"expedited RCU|rcu_exp_handler|rcu_exp_need_qs",
        KNOB,
        "rcu.normal",
        "an expedited RCU grace period; rcupdate.rcu_normal=1 on the kernel's command line does the same",
    ),
    Remedy(CALL, r"trc_read_check_handler", KNOB, "rcu.tasks_ipi", "RCU Tasks Trace looks at what runs here"),
    Remedy(CALL, r"rcu_barrier_(handler|func)", NONE, "", "somebody waits for the RCU callbacks of all CPUs"),
    Remedy(CALL, r"remote_function|__perf_.*|event_function", USER, "", "perf changes its events on this CPU"),
    Remedy(CALL, r"__(rd|wr)msr_.*|__rdmsr.*", USER, "", "somebody reads this CPU's registers (turbostat, monitoring)"),
    Remedy(CALL, r"aperfmperf_.*", USER, "", "somebody reads frequencies (/proc/cpuinfo, scaling_cur_freq)"),
    Remedy(
        CALL, r"(invalidate_bh_lru|drain_.*)", USER, "", "a file system or the memory manager empties per-CPU lists"
    ),
    Remedy(
        CALL,
        r".*",
        NONE,
        "",
        "another CPU had this one run a function; who did is on the same line if the kernel tells",
    ),
    Remedy(
        VECTOR, r"reschedule|Rescheduling interrupts", KNOB, "tasks", "another CPU woke or moved a task to this one"
    ),
    Remedy(
        VECTOR,
        r"call_function(_single)?|Function call interrupts",
        NONE,
        "",
        "another CPU had this one run a function; Linux 6.4 and newer name it",
    ),
    Remedy(
        VECTOR,
        r"irq_work|IRQ work interrupts",
        NONE,
        "",
        "the kernel's own deferred work: printing, perf, RCU, the tick",
    ),
    Remedy(VECTOR, r"tick", BOOT, "nohz_full={cpus}", TICK, TICK_KEPT),
    Remedy(
        VECTOR,
        r"local_timer|Timer broadcast interrupts",
        BOOT,
        "nohz_full={cpus}",
        "the timer interrupt, with no timer due",
    ),
    Remedy(
        VECTOR,
        r"thermal_apic|threshold_apic|deferred_error_apic",
        USER,
        "",
        "the processor reports heat or a corrected error: look at the cooling and at mcelog",
    ),
    Remedy(VECTOR, r".*", NONE, "", "an interrupt of the processor itself"),
    # softirqs
    Remedy(SOFTIRQ, r"RCU", BOOT, "rcu_nocbs={cpus}", "RCU callbacks that were queued on this CPU", RCU_LEFT),
    Remedy(SOFTIRQ, r"NET_RX|NET_TX", KNOB, "irq", "network packets that arrived here, or were sent here by RPS"),
    Remedy(SOFTIRQ, r"BLOCK|IRQ_POLL", KNOB, "irq", "disk requests that were completed here"),
    Remedy(SOFTIRQ, r"SCHED", KNOB, "cpuset", "load balancing; a CPU in an isolated partition has none"),
    Remedy(SOFTIRQ, r"TASKLET|HI", KNOB, "irq", "the second half of a device's interrupt"),
    Remedy(SOFTIRQ, r"TIMER", BOOT, "nohz_full={cpus}", "the timer wheel, looked at on each tick"),
    Remedy(SOFTIRQ, r"HRTIMER", NONE, "", "high-resolution timers of tasks, started on this CPU"),
    Remedy(SOFTIRQ, r".*", NONE, "", "a softirq of the kernel"),
    # tasks
    Remedy(THREAD, r"migration/\d+", NONE, "", "the kernel stops this CPU to move a task or to change its own code"),
    Remedy(THREAD, r"ksoftirqd/\d+", KNOB, "irq", "softirqs that were too many for the interrupt's end"),
    Remedy(THREAD, r"rcuo[pgs]/\d+", KNOB, "tasks", "RCU's callbacks, in a thread that may run elsewhere"),
    Remedy(THREAD, r"(rcuc|rcub)/\d+", BOOT, "rcu_nocbs={cpus}", "RCU's callbacks"),
    Remedy(
        THREAD,
        r"(cpuhp|idle_inject|irq_work|ktimers|backlog_napi)/\d+",
        NONE,
        "",
        "a thread of the kernel that belongs to this CPU",
    ),
    Remedy(THREAD, r"watchdogd?(/\d+)?", KNOB, "watchdog.cpus", "the watchdog's thread"),
    Remedy(THREAD, r"irq/.*", KNOB, "irq", "an interrupt's thread; it follows the interrupt"),
    Remedy(THREAD, r"kworker/u.*", KNOB, "workqueue", "a kworker of unbound queues"),
    Remedy(THREAD, r"kworker/.*", NONE, "", "a kworker that belongs to this CPU"),
    Remedy(
        THREAD, r".*", KNOB, "cpuset", "a task that may run here; an isolated partition and `quiet run` keep it away"
    ),
    # known by counting alone
    Remedy(
        COUNTED,
        r".*",
        KNOB,
        "irq",
        "an interrupt that is not the tick; run as root, where the kernel's tracing names it",
    ),
    # from outside of the kernel
    Remedy(NMI, r".*(perf|watchdog).*", KNOB, "watchdog.nmi", "the hard lockup detector, or somebody's perf"),
    Remedy(NMI, r".*", NONE, "", "the hardware or its firmware wanted attention (errors, a power button)"),
    Remedy(FAULT, r".*", NONE, "", "the detector itself touched memory that was not there: raise RLIMIT_MEMLOCK"),
    Remedy(
        HOST,
        HYPERVISOR,
        NONE,
        "",
        "the machine that runs this one took the CPU; no setting in here can help: pin the virtual CPUs there",
    ),
    Remedy(
        HOST,
        r".*",
        NONE,
        "",
        "the firmware (SMI) took the CPU, or the processor changed its frequency; look for power, USB and fan settings "
        "in the firmware's set-up, and see knob cpufreq.limits",
    ),
    Remedy(
        STALL,
        r".*",
        NONE,
        "",
        "a hiccup of the processor or memory below one microsecond; neither interrupt nor task was seen in it",
    ),
    Remedy(UNKNOWN, r".*", NONE, "", "the evidence does not say; run as root, where the kernel's tracing tells"),
)


def remedy(cause: Cause, cpu: int, in_place: Collection[str] = (), cpus: str = "") -> Remedy:
    """The remedy for a cause on a CPU. `in_place`: the knobs that are applied and the kernel parameters that are given.

    What is in place already is no remedy (NONE): then the text says what it means that the cause is there all the same.
    `cpus`: the list for kernel parameters; default: this CPU.
    """
    for item in REMEDIES:
        if item.kind != cause.kind or not re.fullmatch(item.pattern, cause.name) or not re.fullmatch(item.by, cause.by):
            continue
        names = {"cpu": cpu, "cpus": cpus or str(cpu)}
        found = item._replace(what=item.what.format(**names), text=item.text.format(**names))
        if found.what.partition("=")[0] not in in_place:
            return found
        what = f"knob {found.what}" if found.how == KNOB else found.what
        named = f"{what} is in place already, and this came all the same: {found.text}"
        return found._replace(how=NONE, what="", text=found.still or named)
    raise LookupError(f"no remedy for the kind {cause.kind}")  # the table ends each kind with ".*"


def stopped_by(name: str) -> list[Remedy]:
    """What a knob or a kernel parameter removes: for `quiet explain`."""
    found = (item for item in REMEDIES if item.how in (KNOB, BOOT) and item.what.partition("=")[0] == name)
    return [item._replace(text=item.text.replace("{cpus}", "LIST").replace("{cpu}", "N")) for item in found]
