"""Parameters of clocks, ticks and the watchdogs that look at them."""

from __future__ import annotations

from quiet.boot.parameters.parameter import DOC, FLAG, BootParameter, counted, x86

_OTHERS = ("hpet", "acpi_pm", "kvm-clock", "jiffies", "refined-jiffies", "pit")  # clocks that somebody may have chosen

TABLE: tuple[BootParameter, ...] = (
    BootParameter(
        "skew_tick",
        "1 spreads the CPUs' ticks over the tick's period, so that they do not all ask for the same locks at once",
        risk="CPUs wake at different moments, which costs a little energy",
        example="1",
    ),
    BootParameter(
        "tsc",
        "nowatchdog ends the watch over the time stamp counter, a timer that wakes each CPU in its turn; reliable also "
        "skips the checks at boot",
        risk="on a machine whose counter is not stable the clock goes wrong and nothing says so",
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
        risk="as above: only a stable counter is a clock",
        example="tsc",
        yields=("tsc=unstable", "notsc"),
        needs=x86,
        runtime="/sys/devices/system/clocksource/clocksource0/current_clocksource",
    ),
    BootParameter(
        "nosoftlockup",
        "ends the watchdog for CPUs that never schedule, which wakes a task on each CPU every few seconds",
        risk="a CPU that hangs in the kernel is no longer reported",
        takes=FLAG,
        covered=("nowatchdog",),
        runtime="the knob watchdog.cpus takes the isolated CPUs out of it",
    ),
    BootParameter(
        "nowatchdog",
        "ends both lockup watchdogs",
        risk="a CPU that hangs is no longer reported",
        takes=FLAG,
        runtime="the knobs watchdog.nmi and watchdog.cpus",
    ),
    BootParameter(
        "nmi_watchdog",
        "0 gives back the performance counter that it takes on every CPU, and ends its interrupts",
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
