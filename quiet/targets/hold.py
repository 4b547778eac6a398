"""A value that lasts only while a process has its file open: a small process holds it for us.

    held:cpu_dma_latency  a number in a device
    held:timestamps       a socket whose packets get time stamps: while one exists, the kernel's code for them stays on

Absent is None: no process holds it for us. Other programs may hold their own: of all requests the kernel takes the
strictest (power/pm_qos_interface.rst).
"""

from __future__ import annotations

from quiet.targets.target_type import TargetType

HELD = TargetType(
    "held",
    get=lambda reader, name: reader.held(name),
    put=lambda host, name, value: host.hold(name, int(value)),
    remove=lambda host, name: host.release(name),
)
