"""lockup:soft: the soft-lockup detector, "1" or "0" (/proc/sys/kernel/soft_watchdog).

While neither detector runs, reading kernel.watchdog also switches the common switch behind it off, in kernels of before
late 2024 (kernel/watchdog.c, proc_watchdog_common): any `sysctl -a` does. Writing 1 to soft_watchdog alone then has no
effect, so the common switch goes first.
"""

from __future__ import annotations

import errno

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType

_SYS = "/proc/sys/kernel/"


def _get(reader: Reader, name: str) -> str | None:
    return reader.text(f"{_SYS}{name}_watchdog")


def _put(host: Host, name: str, value: str | None) -> None:
    if value is None:
        raise OSError(errno.EINVAL, "a detector cannot be made absent")
    if value == "1" and host.writable(_SYS + "watchdog"):  # not in a recorded tree: a look would change it
        host.write(_SYS + "watchdog", "1")
    host.write(f"{_SYS}{name}_watchdog", value)


KIND = TargetType(_get, _put)
