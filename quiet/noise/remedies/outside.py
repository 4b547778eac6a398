"""Define remedies for time that no interrupt or task of this kernel took, and for the parts of a late wake-up."""

from __future__ import annotations

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
)
from quiet.noise.call_nesting import FAULT
from quiet.noise.remedies.remedy import Remedies, knob, none, user

UNTRACED = (
    "The kernel traces no event for an exception (a debug trap, a split or bus lock, a machine check), for its work on "
    "the way back to user space, or for a change in the processor's frequency, power or clock state; see knob "
    "cpufreq.limits, and run `quiet noise --prove 10` to test whether the cause is firmware or hardware"
)

REMEDIES: Remedies = {
    FAULT: (none(r".*", "the detector itself touched memory that was not mapped: raise RLIMIT_MEMLOCK"),),
    HOST: (
        none(
            HYPERVISOR,
            "the host of this virtual machine took the CPU; no setting in the guest can help: pin the virtual CPUs "
            "on the host",
        ),
        none(
            FIRMWARE,
            "firmware took the CPU (system management interrupt; the processor counted it): look for power, USB and "
            "fan settings in the firmware setup. Since Linux 5.17, cycles counted by Intel's PMU exclude it",
        ),
        none(NOT_SMI, f"no SMI was counted. {UNTRACED}"),
        none(r".*", f"it is not known whether this was an SMI. {UNTRACED}"),
    ),
    STALL: (
        none(
            r".*",
            "a stall of the processor or memory for less than one microsecond, without any interrupt or task",
        ),
    ),
    UNKNOWN: (none(r".*", "the evidence does not show the cause{naming}"),),
    IDLE: (
        none(
            r"POLL",
            "the CPU polled instead of sleeping, so it needs no time to leave an idle state; in a virtual machine, the "
            "host may have preempted the CPU",
        ),
        knob(
            r".*",
            "idle.cpus",
            "the CPU slept: leaving this idle state takes time; in a virtual machine, the host also has to "
            "resume the CPU",
        ),
    ),
    IRQS_OFF: (
        none(
            r"the idle task|quiet-wake",
            "the timer was due, but its interrupt was late although nothing else ran: because of the exit from the "
            "idle task, the firmware (SMI), or, in a virtual machine, the host",
        ),
        user(
            r".*",
            "the timer was due, but this task ran on before the interrupt arrived: the task kept interrupts off (in a "
            "driver or a system call), or the host of a virtual machine paused the CPU; keep the task off this CPU",
        ),
    ),
    OTHER_CPU: (
        none(
            r".*",
            "the timer was on another CPU, which woke this one: the timers of a nohz_full CPU go to a housekeeping CPU "
            "while timer_migration is 1, and any delay of that CPU also delays this one",
        ),
    ),
    SCHEDULER: (none(r".*", "the kernel's own path from the wake-up to the thread"),),
    USER_RETURN: (none(r".*", "the kernel's exit from the system call, and tracing itself"),),
}
