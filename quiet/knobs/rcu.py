"""RCU: how the kernel waits until nobody uses old data any more, and whom it interrupts for that.

Source: admin-guide/kernel-parameters.txt (rcupdate.*).
"""

from __future__ import annotations

from quiet.knobs.knob import Knob, at_least, one_file

_KERNEL = "/sys/kernel/"
_TASKS_IPI = "/sys/module/rcupdate/parameters/rcu_task_ipi_delay"
_PARAMETERS = "admin-guide/kernel-parameters.txt"
_LATE = 5000  # jiffies: 5 to 50 seconds, as the kernel's HZ is

KNOBS = (
    Knob(
        name="rcu.expedited",
        title="expedited grace periods for everything",
        why="an expedited grace period interrupts every CPU that is in the kernel or busy",
        doc=f"{_PARAMETERS} (rcupdate.rcu_expedited)",
        **one_file(f"{_KERNEL}rcu_expedited", "0"),
    ),
    Knob(
        name="rcu.normal",
        title="no expedited grace periods at all",
        why="with 1, who asks for an expedited grace period waits for a normal one, which interrupts "
        "only CPUs that hold it up",
        doc=f"{_PARAMETERS} (rcupdate.rcu_normal)",
        **one_file(f"{_KERNEL}rcu_normal", "1"),
        risk="network devices, cgroups and modules take longer to remove while it lasts",
    ),
    Knob(
        name="rcu.tasks_ipi",
        title="jiffies before RCU Tasks Trace interrupts a running task",
        why="unloading a BPF program interrupts every CPU whose task has not passed through the scheduler by then",
        doc=f"{_PARAMETERS} (rcupdate.rcu_task_ipi_delay)",
        **at_least(_TASKS_IPI, _LATE, "this kernel does not interrupt tasks for it"),
        risk="detaching BPF programs may take that long while a CPU never leaves user space",
    ),
)
