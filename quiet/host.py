"""The host: the only module that opens /sys and /proc, under a root that is an argument.

A `Reader` cannot write, so what is handed to `plan` cannot change anything. Absent is None, never "" or 0.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess

from quiet import cpulist
from quiet.errors import UsageError

_CHUNK = 1 << 16


class Reader:
    """Reads the files of a live host (root "/") or of a recorded tree."""

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/")
        if not root or (self.root and not os.path.isdir(self.root)):
            raise UsageError(f"--root {root}: no such directory; give the folder that holds sys/ and proc/")

    @property
    def live(self) -> bool:
        """Whether this is the running machine, not a recorded one."""
        return not self.root

    def text(self, path: str) -> str | None:
        """The stripped content of a file, or None when it is absent or cannot be read."""
        try:
            fd = os.open(self.root + path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            parts = []
            while more := os.read(fd, _CHUNK):  # /proc gives a page at a time, whatever is asked for
                parts.append(more)
        except OSError:
            return None
        finally:
            os.close(fd)
        return b"".join(parts).decode("utf-8", "surrogateescape").strip("\0 \t\n")

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; empty when there is none."""
        try:
            return sorted(os.listdir(self.root + path))
        except OSError:
            return []

    def numbered(self, path: str, prefix: str = "") -> list[int]:
        """The numbers N of the names PREFIX+N in a directory, ascending: ("/proc/irq") -> [0, 1, 24, ...]."""
        tails = (n[len(prefix) :] for n in self.names(path) if n.startswith(prefix))
        return sorted(int(tail) for tail in tails if tail.isascii() and tail.isdecimal())

    def at(self, path: str, offset: int, size: int) -> bytes | None:
        """`size` bytes at an offset, of a device file such as a CPU's registers; None when they cannot be read."""
        try:
            fd = os.open(self.root + path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            data = os.pread(fd, size, offset)
        except OSError:
            return None
        finally:
            os.close(fd)
        return data if len(data) == size else None

    def pages(self, path: str) -> list[bytes]:
        """What a file gives page by page, until it has no more for now: the kernel's trace. Raises OSError.

        Not one by one: a file that stays open, because somebody was interrupted between two, keeps its folder there.
        """
        fd = os.open(self.root + path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        size = os.sysconf("SC_PAGE_SIZE")
        found = []
        try:
            with contextlib.suppress(BlockingIOError):
                while page := os.read(fd, size):
                    found.append(page)
        finally:
            os.close(fd)
        return found

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        return os.path.exists(self.root + path)

    def writable(self, path: str) -> bool:
        """Whether the kernel offers the file for writing at all (its mode, not this process's rights)."""
        try:
            return bool(os.stat(self.root + path).st_mode & 0o200)
        except OSError:
            return False


class Host(Reader):
    """Writes too. Every method raises OSError with the kernel's errno when the kernel refuses."""

    def write(self, path: str, value: str) -> None:
        """Write a value in one write(2), as sysfs and procfs want it."""
        if not self.live and not os.path.realpath(self.root + path).startswith(os.path.realpath(self.root) + "/"):
            raise OSError(errno.EXDEV, f"{path} leads out of the tree")  # a recording may hold absolute links
        fd = os.open(self.root + path, os.O_WRONLY | os.O_CLOEXEC | (0 if self.live else os.O_TRUNC))
        try:
            os.write(fd, value.encode("utf-8", "surrogateescape") + b"\n")
        finally:
            os.close(fd)

    def mkdir(self, path: str) -> None:
        """Make a directory (a cgroup, on a live host)."""
        os.mkdir(self.root + path)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory (a cgroup's own files do not count)."""
        os.rmdir(self.root + path)

    def set_affinity(self, tid: int, cpus: str) -> None:
        """Set the CPUs that one thread may run on (sched_setaffinity(2)); `cpus` is a CPU list."""
        self._only_live()
        os.sched_setaffinity(tid, cpulist.parse(cpus))

    def set_scheduling(self, tid: int, policy: str, number: int) -> None:
        """Set a thread's policy by its name (sched(7)), with the real-time priority, or else the nice value."""
        self._only_live()
        chosen = getattr(os, f"SCHED_{policy.upper()}")
        real_time = policy in ("fifo", "rr")
        os.sched_setscheduler(tid, chosen, os.sched_param(number if real_time else 0))
        if not real_time:
            os.setpriority(os.PRIO_PROCESS, tid, number)

    def swap(self, path: str, priority: int | None) -> None:
        """Swap to a device or file with this priority (negative: the kernel chooses one), or no longer (None)."""
        self._only_live()
        if priority is None:
            self._call("swapoff", path.encode())
        else:
            # include/linux/swap.h: SWAP_FLAG_PREFER with the priority in the lower bits
            self._call("swapon", path.encode(), 0x8000 | priority if priority >= 0 else 0)

    def mount(self, kind: str, path: str) -> None:
        """Mount a kernel's file system on a directory (mount(2))."""
        self._only_live()
        self._call("mount", kind.encode(), path.encode(), kind.encode(), 0, None)

    def umount(self, path: str) -> None:
        """Take a mount away (umount(2))."""
        self._only_live()
        self._call("umount", path.encode())

    def _call(self, name: str, *arguments: object) -> None:
        import ctypes

        if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))

    def signal(self, pid: int, name: str) -> None:
        """Send a signal by name."""
        self._only_live()
        os.kill(pid, signal.Signals[name])

    def systemctl(self, *args: str) -> None:
        """Run systemctl to its end; OSError when it fails or is not there."""
        self._only_live()
        try:
            done = subprocess.run(["systemctl", *args], capture_output=True, text=True, check=False, timeout=120)
        except subprocess.TimeoutExpired:
            raise OSError(errno.ETIMEDOUT, f"systemctl {' '.join(args)} did not end within two minutes") from None
        if done.returncode:
            raise OSError(errno.EIO, done.stderr.strip() or f"systemctl {' '.join(args)} ended with {done.returncode}")

    def _only_live(self) -> None:
        if not self.live:
            raise OSError(errno.EOPNOTSUPP, "a recorded tree has no processes to change")
