"""Define remedies for the kernel's deferred work and for tasks: work items, softirqs, threads."""

from __future__ import annotations

from quiet.noise.call_nesting import SOFTIRQ, THREAD, WORK
from quiet.noise.remedies.remedy import Remedies, boot, knob, none, user

RCU_LEFT = "RCU; its callbacks already run elsewhere (rcu_nocbs), and this is the part that each CPU has to do itself"
STOPPED = "the kernel also stops a CPU to move a task or to change its own code, on 64-bit Arm for probes too"
# Work items of system_power_efficient_wq and its freezable variant.
POWER_EFFICIENT = (
    "neigh_(periodic|managed)_work|phy_state_machine|phylink_resolve|gc_worker|check_lifetime|do_cache_clean|"
    "disk_events_workfn|regulator_disable_work"
)

REMEDIES: Remedies = {
    WORK: (
        knob(r"vmstat_update", "vm.stat_interval", "folding this CPU's memory counters into the global ones"),
        knob(r"fb_flashcursor", "console.blink", "the blinking cursor of the framebuffer console"),
        knob(r"(dbs_work_handler|cs_dbs_.*|od_.*)", "cpufreq.governor", "a frequency governor that samples the load"),
        user(
            r"lru_add_drain_per_cpu|drain_local_pages_wq",
            "a program drains every CPU's page lists (drop_caches, memory hotplug, mlockall, compaction); "
            "khugepaged and ksmd do so in each scan (knobs thp.scan and ksm)",
        ),
        user(r"update_pages_handler", "a program changes the size of a trace buffer"),
        knob(r"toggle_allocation_gate", "kfence", "the kernel's own memory checker (KFENCE) samples an allocation"),
        boot(
            r"psi_avgs_work",
            "psi=0",
            "every two seconds, the pressure statistics (PSI) of a cgroup whose tasks ran here",
        ),
        user(
            r"blk_mq_(run|timeout|requeue)_work(_fn)?",
            "a disk's queue that belongs to this CPU has requests; read and write from housekeeping CPUs",
        ),
        user(r"bpf_prog_free_deferred", "a BPF program was freed on this CPU; load and detach programs on another CPU"),
        boot(
            rf"({POWER_EFFICIENT})",
            "workqueue.power_efficient=1",
            "a work item whose queue becomes unbound with this parameter; then the knob workqueue keeps it away",
        ),
        knob(r".*", "workqueue", "a work item of an unbound queue, which can be kept away", by=r"kworker/u.*"),
        none(
            r".*",
            "a work item that each CPU queues for itself, or that a task here queued; only its source can be stopped",
        ),
    ),
    SOFTIRQ: (
        boot(r"RCU", "rcu_nocbs={cpus}", "RCU callbacks that were queued on this CPU", RCU_LEFT),
        knob(
            r"NET_RX|NET_TX",
            "irq",
            "network packets whose interrupt came here, or that RPS or RFS sent here (knobs net.rps and net.rfs)",
            "network packets without an interrupt: sent here by RPS or RFS (knobs net.rps and net.rfs), or over "
            "loopback by a task that runs here",
        ),
        knob(r"BLOCK|IRQ_POLL", "irq", "disk requests that were completed here"),
        knob(r"SCHED", "cpuset", "load balancing; a CPU in an isolated partition has none"),
        knob(r"TASKLET|HI", "irq", "the second half of a device's interrupt"),
        boot(r"TIMER", "nohz_full={cpus}", "the timer wheel, checked on each tick"),
        none(r"HRTIMER", "high-resolution timers that tasks started on this CPU"),
        none(r".*", "a softirq of the kernel"),
    ),
    THREAD: (
        knob(
            r"migration/\d+",
            "watchdog.cpus",
            f"the soft lockup detector runs in this thread, by default every 4 s; {STOPPED}",
            STOPPED,
        ),
        knob(r"ksoftirqd/\d+", "irq", "more softirqs than could run at the end of the interrupt"),
        knob(r"rcuo[pgs]/\d+", "tasks", "RCU's callbacks, in a thread that may run elsewhere"),
        boot(r"(rcuc|rcub)/\d+", "rcu_nocbs={cpus}", "RCU's callbacks"),
        none(
            r"(cpuhp|idle_inject|irq_work|ktimers|backlog_napi)/\d+", "a thread of the kernel that belongs to this CPU"
        ),
        knob(r"irq/.*", "irq", "an interrupt's thread; it follows the interrupt"),
        knob(r"kworker/u.*", "workqueue", "a kworker of unbound queues"),
        none(r"kworker/.*", "a kworker that belongs to this CPU"),
        knob(r".*", "cpuset", "a task that may run here; an isolated partition and `quiet run` keep it away"),
    ),
}
