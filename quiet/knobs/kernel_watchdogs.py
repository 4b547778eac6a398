"""What the kernel checks on itself from time to time: hung tasks, stalled workqueues, memory errors.

Sources: admin-guide/lockup-watchdogs.rst, admin-guide/sysctl/kernel.rst, dev-tools/kfence.rst.
"""

from __future__ import annotations

from collections.abc import Iterable

from quiet.knobs.knob import DesiredValue, Knob, RuleContext, Skip, at_least, one_file
from quiet.targets import registry, value_types

_HUNG = "/proc/sys/kernel/hung_task_timeout_secs"
_STALLED = "/sys/module/workqueue/parameters/watchdog_thresh"
_KFENCE = "/sys/module/kfence/parameters/"
_EDAC = "/sys/module/edac_core/parameters/edac_mc_poll_msec"
_HOUR = 3_600_000  # milliseconds


def _soft_lockups(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    current = registry.get(scene.facts.reader, "lockup:soft")
    if current is None:
        yield Skip("lockup:soft", "this kernel has no soft-lockup detector")
    else:
        yield DesiredValue("lockup:soft", "0", current=current)


def _sampling(scene: RuleContext) -> Iterable[DesiredValue | Skip]:
    path = _KFENCE + "sample_interval"
    current = scene.text(path)
    if current is None:
        yield Skip(f"file:{path}", "this kernel has no KFENCE")
    elif current != "0" and not scene.facts.reader.exists(_KFENCE + "deferrable"):
        # that parameter came with the same release as switching it on again did
        yield Skip(f"file:{path}", "this kernel (before Linux 5.18) could not switch it on again")
    else:
        yield DesiredValue(f"file:{path}", "0", current=current)


KNOBS = (
    Knob(
        name="watchdog.soft",
        title="soft-lockup detector",
        why="it arms a timer and wakes a thread every few seconds on each CPU that it watches",
        doc="admin-guide/sysctl/kernel.rst (soft_watchdog), admin-guide/lockup-watchdogs.rst",
        rule=_soft_lockups,
        kind=value_types.NUMBER,
        targets="lockup:soft (/proc/sys/kernel/soft_watchdog)",
        after=("watchdog.nmi", "watchdog.cpus"),
        risk="a CPU that hangs in the kernel is not reported while it lasts",
    ),
    Knob(
        name="watchdog.hung_tasks",
        title="check for hung tasks",
        why="khungtaskd looks at every task of the host every two minutes",
        doc="admin-guide/sysctl/kernel.rst (hung_task_timeout_secs)",
        **one_file(_HUNG, "0", "this kernel does not look for hung tasks"),
        risk="tasks that hang in the kernel are not reported while it lasts",
    ),
    Knob(
        name="watchdog.workqueue",
        title="check for stalled workqueues",
        why="a timer looks at every worker pool twice a minute",
        doc="admin-guide/kernel-parameters.txt (workqueue.watchdog_thresh)",
        **one_file(_STALLED, "0", "this kernel does not look for stalled workqueues"),
    ),
    Knob(
        name="kfence",
        title="sampling of memory errors (KFENCE)",
        why="ten times a second an allocation is guarded; where that is a static key, each time interrupts every CPU",
        doc="dev-tools/kfence.rst (kfence.sample_interval)",
        rule=_sampling,
        kind=value_types.NUMBER,
        targets=f"file:{_KFENCE}sample_interval",
        refusals={22: "KFENCE has found an error and stays off until the next boot"},
    ),
    Knob(
        name="edac.poll",
        title="milliseconds between looks for corrected memory errors",
        why="drivers without an interrupt for them read the memory controllers' registers every second",
        doc="driver-api/edac.rst; drivers/edac/edac_mc_sysfs.c (edac_mc_poll_msec)",
        **at_least(_EDAC, _HOUR, "no EDAC driver is loaded"),
        risk="corrected memory errors are reported later",
    ),
)
