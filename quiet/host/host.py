"""Change a host.

The base classes handle files, programs and held devices; this module handles tasks, swap and mounts.
"""

from __future__ import annotations

import os

from quiet import cpulist
from quiet.host.hold import Holder
from quiet.host.programs import Programs


class Host(Holder, Programs):
    """A host that can be changed. The methods that change it raise OSError with the kernel's errno on failure."""

    def set_affinity(self, tid: int, cpus: str) -> None:
        """Set the CPUs that one thread may run on (sched_setaffinity(2)); `cpus` is a CPU list."""
        self._only_live()
        os.sched_setaffinity(tid, cpulist.parse(cpus))

    def set_scheduling(self, tid: int, policy: str, number: int) -> None:
        """Set a thread's scheduling policy by name (sched(7)); `number` is the real-time priority or the nice value."""
        self._only_live()
        chosen = getattr(os, f"SCHED_{policy.upper()}")
        real_time = policy in ("fifo", "rr")
        os.sched_setscheduler(tid, chosen, os.sched_param(number if real_time else 0))
        if not real_time:
            os.setpriority(os.PRIO_PROCESS, tid, number)

    def signal(self, pid: int, name: str) -> None:
        """Send a signal, such as "STOP", to a process."""
        import signal

        self._only_live()
        os.kill(pid, signal.Signals[name])

    def swap(self, path: str, priority: int | None) -> None:
        """Swap to a device or file with this priority (negative: chosen by the kernel); None: stop swapping to it."""
        self._only_live()
        if priority is None:
            self._call("swapoff", path.encode())
        else:
            # include/linux/swap.h: SWAP_FLAG_PREFER with the priority in the lower bits
            self._call("swapon", path.encode(), 0x8000 | priority if priority >= 0 else 0)

    def mount(self, kind: str, path: str) -> None:
        """Mount a pseudo file system of type `kind` on a directory (mount(2))."""
        self._only_live()
        self._call("mount", kind.encode(), path.encode(), kind.encode(), 0, None)

    def umount(self, path: str) -> None:
        """Unmount a file system (umount(2))."""
        self._only_live()
        self._call("umount", path.encode())

    def _call(self, name: str, *arguments: object) -> None:
        import ctypes

        if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
