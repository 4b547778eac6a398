"""Kinds of targets with a room of their own: what lies behind a name that is more than a file or a mask.

`KINDS` maps the word before the colon to how such a target is read and written; quiet.targets asks here for every
word that it does not know itself. A kind sees the host through a Reader or a Host only.
"""

from __future__ import annotations

from quiet.kinds.kind import Kind
from quiet.kinds.lockup import LOCKUP
from quiet.kinds.resctrl import MOUNT, RESCTRL, SCHEMATA
from quiet.kinds.sched import SCHED
from quiet.kinds.swap import SWAP

KINDS: dict[str, Kind] = {
    "lockup": LOCKUP,
    "mount": MOUNT,
    "resctrl": RESCTRL,
    "sched": SCHED,
    "schemata": SCHEMATA,
    "swap": SWAP,
}
