"""Define parameters that keep work off CPUs: scheduler, RCU, interrupts, workqueues, ticks, clocks and watchdogs."""

from __future__ import annotations

from quiet.boot.parameters.parameter import DOC, FLAG, HOUSEKEEPING, ISOLATED, BootParameter, counted, tickless, x86

_OTHERS = ("hpet", "acpi_pm", "kvm-clock", "jiffies", "refined-jiffies", "pit")  # an administrator may have chosen one

TABLE: tuple[BootParameter, ...] = (
    BootParameter(
        "isolcpus",
        "managed_irq keeps interrupts whose affinity a driver manages (NVMe, many network cards) off these CPUs if "
        "their mask also has housekeeping CPUs; an interrupt with only isolated CPUs, as with one queue for each CPU, "
        "stays there. domain removes the CPUs from the scheduler's load balancing until the next boot",
        risk="domain cannot be undone before a reboot, and some kernels since Linux 6.7 (seen: 6.12) reject an "
        "isolated partition of these CPUs; the profiles add it ({domain}) only on hosts without cgroup v2 with cpuset",
        doc=f"{DOC} (isolcpus=), admin-guide/cpu-isolation",
        takes=ISOLATED,
        example="managed_irq,{isolated}",
        runtime="the knob cpuset creates an isolated partition; no setting moves a managed interrupt at run time, but "
        "a CPU that submits no I/O receives none",
    ),
    BootParameter(
        "nohz_full",
        "stops the scheduler's tick, 100 to 1,000 interrupts per second, on a CPU with only one task to run; also "
        "offloads RCU's callbacks and keeps timers and unbound kernel threads away",
        risk="each system call and interrupt on such a CPU takes a few hundred nanoseconds longer; the boot CPU keeps "
        "its tick",
        doc="timers/no_hz, " + DOC + " (nohz_full=)",
        takes=ISOLATED,
        example="{isolated}",
        against=("nohz=off", "highres=off"),
        needs=tickless,
    ),
    BootParameter(
        "rcu_nocbs",
        "hands the callbacks that RCU would run on these CPUs to threads that can be placed elsewhere; nohz_full= "
        "includes this for its CPUs",
        risk="freeing memory takes one more wakeup; the threads need idle time on housekeeping CPUs",
        doc="RCU/Design/Requirements, timers/no_hz, " + DOC + " (rcu_nocbs)",
        takes=ISOLATED,
        example="{isolated}",
    ),
    BootParameter(
        "rcu_nocb_poll",
        "lets the threads of rcu_nocbs= poll for callbacks, so that an isolated CPU never has to wake one",
        risk="the polling threads wake the housekeeping CPUs all the time, which costs energy",
        takes=FLAG,
    ),
    BootParameter(
        "rcutree.use_softirq",
        "0 runs RCU's core processing in the rcuc threads, whose priority can be set, instead of in softirqs",
        risk="one more context switch for each round of RCU's processing",
        example="0",
    ),
    BootParameter(
        "rcutree.nohz_full_patience_delay",
        "the milliseconds that RCU waits before it disturbs a nohz_full= CPU (since 6.11)",
        risk="grace periods take that much longer, and memory is freed later",
        example="1000",
        needs=tickless,
    ),
    BootParameter(
        "rcutree.kthread_prio",
        "the real-time priority of RCU's threads, so that a busy real-time task cannot hold up all of RCU",
        risk="threads above a measured task's priority interrupt it",
        example="11",
    ),
    BootParameter(
        "rcutree.rcu_nocb_gp_stride",
        "the number of callback-offloaded CPUs per grace-period thread; a lower number spreads the work",
        risk="more threads",
        example="8",
    ),
    BootParameter(
        "rcupdate.rcu_normal_after_boot",
        "1 turns expedited grace periods, which interrupt CPUs that are in the kernel, into normal ones after boot",
        risk="a request for an expedited grace period (network configuration, tracing, BPF) waits for about 10 ms",
        example="1",
        covered=("rcupdate.rcu_normal=1",),
        runtime="/sys/kernel/rcu_normal",
    ),
    BootParameter(
        "rcupdate.rcu_normal",
        "1 turns every expedited grace period into a normal one, even during boot: RCU then interrupts only a CPU that "
        "delays a grace period, and only after a while (a nohz_full= CPU sooner: rcutree.nohz_full_patience_delay)",
        risk="the same as for rcupdate.rcu_normal_after_boot, and a slower boot",
        example="1",
        runtime="/sys/kernel/rcu_normal",
    ),
    BootParameter(
        "rcupdate.rcu_cpu_stall_suppress",
        "1 disables RCU's reports of CPUs that hold up a grace period: a report prints all their stacks, which takes "
        "milliseconds",
        risk="a CPU that hangs in the kernel is no longer reported",
        example="1",
        runtime="/sys/module/rcupdate/parameters/rcu_cpu_stall_suppress",
    ),
    BootParameter(
        "irqaffinity",
        "the CPUs that serve new interrupts from boot on, so that no later device starts to interrupt an isolated CPU",
        risk="these CPUs serve all interrupts except those that a driver manages",
        takes=HOUSEKEEPING,
        example="{housekeeping}",
        runtime="the knobs irq and irq.default",
    ),
    BootParameter(
        "workqueue.unbound_cpus",
        "the CPUs that may run work of unbound workqueues; isolcpus=domain and nohz_full= already exclude their CPUs",
        risk="unbound work has fewer CPUs",
        takes=HOUSEKEEPING,
        example="{housekeeping}",
        runtime="the knob workqueue",
    ),
    BootParameter(
        "workqueue.power_efficient",
        "1 makes the work items of some per-CPU workqueues unbound, so that they leave an isolated CPU",
        risk="such work may run on a different CPU than the one that has its data in the cache",
        example="1",
    ),
    BootParameter(
        "threadirqs",
        "runs interrupt handlers in threads, which have a priority and a CPU mask, if their driver allows it",
        risk="two context switches per interrupt: more latency and less throughput for devices",
        takes=FLAG,
    ),
    BootParameter(
        "preempt",
        "the preemption mode of kernel code: full or lazy, if the kernel was built with this choice; none and "
        "voluntary only before Linux 7.0, which ignores them with a warning on x86 and arm64",
        risk="lazy, none: longer delays for tasks that become ready; full: more switches in the middle of system calls",
        example="lazy",
        runtime="/sys/kernel/debug/sched/preempt",
    ),
    BootParameter(
        "systemd.cpu_affinity",
        "keeps systemd and everything that it starts on these CPUs from the first process on",
        risk="no process leaves them unless it sets its own affinity, benchmarks included",
        doc="systemd: kernel-command-line(7), systemd-system.conf(5) (CPUAffinity=)",
        takes=HOUSEKEEPING,
        example="{housekeeping}",
        runtime="the knobs tasks and cpuset",
    ),
    BootParameter(
        "kthread_cpus",
        "the CPUs for kernel threads, in some distributions' kernels; elsewhere isolcpus= and nohz_full= place them",
        risk="ignored, and handed to init as an argument, by kernels that do not know it",
        doc="none in the kernel's own documentation; kernels of Red Hat and Wind River had it",
        takes=HOUSEKEEPING,
        example="{housekeeping}",
        runtime="the knob tasks",
    ),
    BootParameter(
        "nosmt",
        "starts only one hardware thread of each core, so that nothing shares a core with the measured work",
        risk="half of the machine's CPUs are offline; smt/control brings them back, except with nosmt=force",
        takes=FLAG,
        runtime="the knob smt",
    ),
    BootParameter(
        "maxcpus",
        "starts only this many CPUs; the other CPUs never receive an interrupt",
        risk="the CPU numbering determines which CPUs stay offline, and user space can still start them",
        example="8",
    ),
    # clocks, ticks, and the watchdogs that check them
    BootParameter(
        "skew_tick",
        "1 spreads the CPUs' ticks over the tick's period, so that they do not all take the same locks at once",
        risk="CPUs wake at different moments, which costs a little energy",
        example="1",
    ),
    BootParameter(
        "tsc",
        "nowatchdog disables the watchdog of the time stamp counter, a timer that wakes each CPU in turn; reliable "
        "also skips the checks at boot",
        risk="on a machine whose counter is not stable, the clock becomes wrong without a message",
        doc=f"{DOC} (tsc=)",
        example="nowatchdog",
        against=("tsc=watchdog",),
        covered=("tsc=reliable",),
        yields=("tsc=unstable", "notsc", *(f"clocksource={other}" for other in _OTHERS)),
        adds=True,
        needs=counted,
    ),
    BootParameter(
        "clocksource",
        "the clock that the kernel reads; tsc is the one that needs neither a device nor a hypervisor",
        risk="on a machine whose counter is not stable, the clock becomes wrong without a message",
        example="tsc",
        yields=("tsc=unstable", "notsc"),
        needs=x86,
        runtime="/sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    BootParameter(
        "nosoftlockup",
        "disables the watchdog for CPUs that never schedule, which wakes a task on each CPU every few seconds",
        risk="a CPU that hangs in the kernel is no longer reported",
        takes=FLAG,
        covered=("nowatchdog",),
        runtime="the knob watchdog.cpus excludes the isolated CPUs from the watchdog",
    ),
    BootParameter(
        "nowatchdog",
        "disables the soft-lockup and the hard-lockup detector",
        risk="a CPU that hangs is no longer reported",
        takes=FLAG,
        runtime="the knobs watchdog.nmi and watchdog.cpus",
    ),
    BootParameter(
        "nmi_watchdog",
        "0 stops the interrupts of the hard-lockup detector and frees its performance counter on every CPU",
        risk="a CPU that hangs with interrupts off is no longer reported",
        doc=f"{DOC} (nmi_watchdog=), admin-guide/lockup-watchdogs",
        example="0",
        covered=("nowatchdog",),
        runtime="the knob watchdog.nmi",
    ),
    BootParameter(
        "nohz",
        "on (the default) stops the tick of idle CPUs; nohz_full= needs it",
        example="on",
        doc=f"{DOC} (nohz=), timers/no_hz",
    ),
)
