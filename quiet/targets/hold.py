"""Hold values that last only while their file is open, with a small process that keeps the file open.

    held:cpu_dma_latency  a number in a device
    held:timestamps       a socket whose packets get timestamps: while it exists, the kernel keeps timestamping enabled

None means absent: no process of quiet holds the value. Other programs may hold other values; the kernel applies the
strictest request (power/pm_qos_interface.rst).
"""

from __future__ import annotations

from quiet.targets.target_type import TargetType

HELD = TargetType(
    "held",
    get=lambda reader, name: reader.held(name),
    put=lambda host, name, value: host.hold(name, int(value)),
    remove=lambda host, name: host.release(name),
)
