"""Access `lockup:soft`: the soft-lockup detector, "1" or "0" (/proc/sys/kernel/soft_watchdog).

The detectors share a common switch. On kernels before late 2024, reading kernel.watchdog, as `sysctl -a` does, disables
this switch if no detector runs (kernel/watchdog.c, proc_watchdog_common). Then writing 1 to soft_watchdog alone has no
effect, so the common switch is enabled first.
"""

from __future__ import annotations

from quiet.host.host import Host
from quiet.targets.target_type import TargetType

_SYS = "/proc/sys/kernel/"


def _put(host: Host, name: str, value: str) -> None:
    if value == "1" and host.writable(_SYS + "watchdog"):  # not in a recorded tree; reading would change it
        host.write(_SYS + "watchdog", "1")
    host.write(f"{_SYS}{name}_watchdog", value)


LOCKUP = TargetType("lockup", lambda reader, name: reader.text(f"{_SYS}{name}_watchdog"), _put)
