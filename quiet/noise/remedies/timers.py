"""Define remedies for timers: high-resolution timers, the timer wheel, and timers that a CPU runs for others."""

from __future__ import annotations

from quiet.noise.call_nesting import HRTIMER, PULLED, TIMER
from quiet.noise.remedies.remedy import TICK, TICK_KEPT, Remedies, boot, knob, none, user

REMEDIES: Remedies = {
    HRTIMER: (
        boot(r"tick_(sched_timer|nohz_handler)|tick_nohz_highres_handler", "nohz_full={cpus}", TICK, TICK_KEPT),
        knob(r"watchdog_timer_fn", "watchdog.cpus", "the soft lockup detector"),
        knob(r"sched_rt_period_timer", "rt_throttling", "the real-time bandwidth limit"),
        user(r"sched_cfs_.*", "a cgroup with a CPU limit (cpu.max) has run here; remove the limit"),
        knob(
            r"perf_mux_hrtimer_handler",
            "perf.mux_interval",
            "there are more perf events than hardware counters, so the events take turns",
        ),
        user(r"perf_swevent_hrtimer", "a perf event on this CPU; end the profiler"),
        knob(
            r"hrtimer_wakeup",
            "tasks",
            "a task slept with its timer on this CPU, because it ran here when it started to sleep",
        ),
        knob(
            r"posix_timer_fn|it_real_fn|timerfd_tmrproc|alarmtimer_fired",
            "tasks",
            "a task's own timer, started while the task was on this CPU; it stays here until it is started elsewhere",
        ),
        knob(
            r"dl_task_timer",
            "sched.servers",
            "since Linux 6.12, each CPU has a timer of the fair server, which reserves time for ordinary tasks, and "
            "since Linux 7.0 one of a server for sched_ext tasks; or a deadline task has run here",
        ),
        none(r"hrtick", "the scheduler's own timer for the task that runs here"),
        boot(
            r".*",
            "nohz_full={cpus}",
            "a kernel timer that was started on this CPU; timers started on a nohz_full CPU run elsewhere, unless they "
            "are bound to it",
            "a kernel timer that belongs to this CPU",
        ),
    ),
    TIMER: (
        boot(r"clocksource_watchdog", "tsc=nowatchdog", "the check of the time stamp counter, on each CPU in turn"),
        knob(r"mce_timer_fn", "mce.interval", "polling for corrected machine checks"),
        boot(
            r"delayed_work_timer_fn",
            "nohz_full={cpus}",
            "a delayed work item that was queued on this CPU; since Linux 6.9, housekeeping CPUs run such timers of a "
            "nohz_full CPU",
            "a delayed work item that was queued on this CPU, for this CPU or by a task that ran here",
        ),
        knob(r"process_timeout", "tasks", "a task waited with a time-out on this CPU"),
        boot(
            r".*",
            "nohz_full={cpus}",
            "a kernel timer that was started on this CPU; housekeeping CPUs run the timers of a nohz_full CPU, unless "
            "they are bound to it. Since Linux 6.19, a CPU that is isolated without nohz_full runs its own timers",
            "a kernel timer that is bound to this CPU, or was due while the CPU had its tick",
        ),
    ),
    PULLED: (
        boot(
            r".*",
            "nohz_full={cpus}",
            "since Linux 6.9 a busy CPU runs the timers of idle CPUs, until Linux 6.18 even if it is in an isolated "
            "partition; a nohz_full CPU without its tick counts as idle. Since Linux 6.19, the knob cpuset is enough",
            "a busy CPU runs the timers of idle CPUs; this nohz_full CPU had its tick and so counted as busy (the "
            "report shows the reason for the tick if the kernel names it)",
        ),
    ),
}
