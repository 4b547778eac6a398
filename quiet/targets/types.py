"""Kinds of targets with a room of their own: what lies behind a name that is more than a file or a mask.

`KINDS` maps the word before the colon to how such a target is read and written; quiet.targets.registry asks here for
every word that it does not know itself. A kind sees the host through a Reader or a Host only.
"""

from __future__ import annotations

from quiet.targets import hold, lockup, net, resctrl, sched, swap, systemd_slice, unit
from quiet.targets.target_type import TargetType

KINDS: dict[str, TargetType] = {
    "held": hold.KIND,
    "lockup": lockup.KIND,
    "mount": resctrl.MOUNT,
    "net": net.NET,
    "resctrl": resctrl.KIND,
    "sched": sched.KIND,
    "schemata": resctrl.SCHEMATA,
    "slice": systemd_slice.KIND,
    "swap": swap.KIND,
    "unit": unit.KIND,
}
