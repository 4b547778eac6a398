"""Define remedies for interrupts from devices, other CPUs and the processor itself."""

from __future__ import annotations

from quiet.noise.call_nesting import CALL, COUNTED, IRQ, NMI, VECTOR
from quiet.noise.remedies.remedy import TICK, TICK_KEPT, Remedies, boot, knob, none, user

SHOOTDOWNS = r"TLB shootdown.*"

REMEDIES: Remedies = {
    IRQ: (
        boot(r"\d+ arch_timer", "nohz_full={cpus}", "the timer interrupt, with no timer due", TICK_KEPT),
        knob(
            r".*",
            "irq",
            "a device's interrupt. The kernel itself places managed interrupts: isolcpus=managed_irq,{cpus} on its "
            "command line keeps them away if housekeeping CPUs share the queue; a queue of only isolated CPUs is "
            "silent as long as nothing on these CPUs uses the device",
        ),
    ),
    CALL: (
        knob(SHOOTDOWNS, "thp.scan", "khugepaged collapses pages of a task that runs here", by=r".*khugepaged.*"),
        knob(SHOOTDOWNS, "vm.compaction", "kcompactd moves pages of a task that runs here", by=r".*kcompactd.*"),
        knob(SHOOTDOWNS, "ksm", "ksmd merges equal pages of a task that runs here", by=r".*ksmd.*"),
        knob(SHOOTDOWNS, "damon", "DAMON monitors or reclaims pages of a task that runs here", by=r".*kdamond.*"),
        user(
            SHOOTDOWNS,
            "memory is short, and kswapd takes pages from a task that runs here: free memory, or lock it with "
            "mlockall(2)",
            by=r".*kswapd.*",
        ),
        user(
            r"TLB shootdown.*|flush_tlb_func|do_flush_tlb_all|do_kernel_range_flush",
            "another CPU changed page tables that this CPU uses: threads of the same process ran there, or the kernel "
            "freed mapped memory; run the process on one CPU, or map its memory beforehand. NUMA balancing also "
            "changes the page tables of a process with threads on other CPUs (knob numa_balancing)",
        ),
        user(
            r"membarrier.*|ipi_mb|ipi_sync_core|ipi_rseq|ipi_sync_rq_state",
            "a thread of a process that also runs on this CPU called membarrier(2)",
        ),
        knob(
            r"tlb_remove_table_smp_sync",
            "thp.scan",
            "khugepaged collapses pages of a process, and then interrupts every CPU",
            by=r".*khugepaged.*",
        ),
        user(
            r"tlb_remove_table_smp_sync",
            "a process frees or collapses page tables (munmap, MADV_COLLAPSE), and then interrupts every CPU",
        ),
        knob(r"wake-up of a task", "tasks", "another CPU woke a task that last ran here or belongs here"),
        boot(
            r"nohz_full_kick_func",
            "tsc=nowatchdog",
            "another CPU started a timer on this CPU, which must then re-check its tick; the check of the time "
            "stamp counter starts its timer on each CPU in turn",
            "another CPU started a timer on this CPU, or changed a condition for its tick",
        ),
        user(
            r"code patching|do_sync_core|text_poke.*|__sync_core|do_nothing",
            "the kernel changed its own code: tracing or probes were switched on or off, a module was loaded, or a "
            "static key changed (see the knobs "
            "static_keys.timestamps and kfence)",
        ),
        knob(
            r"expedited RCU|rcu_exp_handler|rcu_exp_need_qs",
            "rcu.normal",
            "an expedited RCU grace period; rcupdate.rcu_normal=1 on the kernel's command line does the same",
        ),
        knob(r"trc_read_check_handler", "rcu.tasks_ipi", "RCU Tasks Trace checks the task that runs here"),
        none(r"rcu_barrier_(handler|func)", "a task waits for the RCU callbacks of all CPUs"),
        user(r"remote_function|__perf_.*|event_function", "perf changes its events on this CPU"),
        user(
            r"__(rd|wr)msr_.*|__rdmsr.*",
            "a program reads or writes this CPU's model-specific registers (turbostat, monitoring, wrmsr)",
        ),
        user(r"aperfmperf_.*", "a program reads frequencies (/proc/cpuinfo, scaling_cur_freq)"),
        user(r"(invalidate_bh_lru|drain_.*)", "a file system or the memory manager empties per-CPU lists"),
        none(r".*", "another CPU made this CPU run a function; the line of the cause shows the sender if it is known"),
    ),
    VECTOR: (
        knob(r"reschedule|Rescheduling interrupts", "tasks", "another CPU woke a task on this CPU or moved one here"),
        none(
            r"call_function(_single)?|Function call interrupts",
            "another CPU made this CPU run a function, which Linux 6.4 and newer name",
        ),
        none(r"irq_work|IRQ work interrupts", "the kernel's own deferred work: printing, perf, RCU, the tick"),
        boot(r"tick", "nohz_full={cpus}", TICK, TICK_KEPT),
        boot(r"local_timer|Timer broadcast interrupts", "nohz_full={cpus}", "the timer interrupt, with no timer due"),
        user(
            r"thermal_apic",
            "the processor reports heat, a power limit, or a change in its guaranteed frequency (Intel HWP): check the "
            "cooling, and whether base_frequency has changed",
        ),
        user(
            r"threshold_apic|deferred_error_apic",
            "the processor reports a corrected error: check rasdaemon or mcelog",
        ),
        none(r".*", "an interrupt of the processor itself"),
    ),
    COUNTED: (
        knob(r"other timer", "tasks", "a timer of a task that slept here, or of the kernel{naming}"),
        knob(r".*", "irq", "an interrupt that is not the tick{naming}"),
    ),
    NMI: (
        knob(
            r".*(perf|watchdog).*",
            "watchdog.nmi",
            "the hard lockup detector, or a profiler that samples on this CPU (perf, or cbench with samples)",
            "a profiler samples on this CPU (perf, or cbench with samples); the hard lockup detector is off",
        ),
        user(
            r"nmi_cpu_backtrace_handler",
            "the kernel printed what each CPU was doing (RCU stall, lockup, hung task, SysRq): see dmesg",
        ),
        none(r".*", "the hardware or its firmware requested attention (errors, a power button)"),
    ),
}
