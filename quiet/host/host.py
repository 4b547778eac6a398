"""Change a host.

The base classes handle files and held devices; this module handles programs, systemd's units, tasks, swap and mounts.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Sequence

from quiet import cpulist
from quiet.host.hold import Holder


class Host(Holder):
    """A host that can be changed. The methods that change it raise OSError with the kernel's errno on failure."""

    _units: dict[str, tuple[str, str]] | None = None

    def run(self, *command: str, seconds: float = 600) -> str:
        """Run a program until it exits and return its output; `seconds`: the time limit.

        Raises OSError if it fails, times out or does not exist.
        """
        import subprocess  # rarely needed and slow to load

        self._only_live()
        said = " ".join(command)
        # cron and services may start with a PATH that lacks the sbin directories
        folders = ":".join(filter(None, (os.environ.get("PATH"), "/usr/sbin:/sbin:/usr/bin:/bin")))
        environment = {**os.environ, "PATH": folders}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=seconds, env=environment
            )
        except subprocess.TimeoutExpired:
            raise OSError(errno.ETIMEDOUT, f"{said} did not end within {seconds / 60:g} minutes") from None
        except FileNotFoundError:
            raise OSError(errno.ENOENT, f"{command[0]}: no such program") from None
        if done.returncode:
            raise OSError(errno.EIO, done.stderr.strip() or f"{said} exited with {done.returncode}")
        return done.stdout

    def systemctl(self, *args: str) -> str:
        """Run systemctl and return its output. Raises OSError if it fails or does not exist."""
        self._units = None  # systemctl may change units
        return self.run("systemctl", *args, seconds=120)

    def unit_states(self) -> dict[str, tuple[str, str]]:
        """The (load state, active state) of each loaded service, timer, socket, path, target and mount, by its name.

        Cached until the next call of systemctl(); empty if systemctl fails.
        """
        if self._units is None:
            units = {}
            with contextlib.suppress(OSError):
                kinds = "--type=service,timer,socket,path,target,mount"
                listed = self.run("systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", kinds)
                rows = (line.split(None, 4) for line in listed.splitlines())
                units = {row[0]: (row[1], row[2]) for row in rows if len(row) > 3}
            self._units = units
        return self._units

    def unit_properties(self, units: Sequence[str], properties: Sequence[str]) -> dict[str, dict[str, str]]:
        """These properties of these units, in systemctl's notation, by the unit's name. Raises OSError."""
        shown = self.run("systemctl", "show", f"--property=Id,{','.join(properties)}", "--", *units)
        lines = (block.splitlines() for block in shown.split("\n\n"))
        blocks = (dict(line.split("=", 1) for line in block if "=" in line) for block in lines)
        return {block.pop("Id"): block for block in blocks if "Id" in block}

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
        """Send a signal, such as "SIGSTOP", to a process."""
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
