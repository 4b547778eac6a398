"""A value that lasts only while a process has its file open: a small process holds it for us.

    held:cpu_dma_latency  a number in a device
    held:timestamps       a socket whose packets get time stamps: while one exists, the kernel's code for them stays on

Absent is None: no process holds it for us. Other programs may hold their own: of all requests the kernel takes the
strictest (power/pm_qos_interface.rst).
"""

from __future__ import annotations

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType


def _get(reader: Reader, name: str) -> str | None:
    return reader.held(name)


def _put(host: Host, name: str, value: str) -> None:
    host.hold(name, int(value))


def _remove(host: Host, name: str) -> None:
    host.release(name)


HELD = TargetType("held", _get, _put, _remove)
