"""Reading the files of a host, under a root that is an argument.

A `Reader` cannot write, so what is handed to `plan` cannot change anything. Absent is None, never "" or 0.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Callable

from quiet.errors import UsageError

ANSWERS = "/run/quiet-recorded"  # in a recorded tree, what its kernel had answered
HELD = "/run/quiet/held."  # one record for each device file that a process holds open for us
FLOCK = "hhqqi"  # struct flock: type, whence, start, length, pid
_CHUNK = 1 << 16
_PAGE = 4096
# one value a file, made in one go: less than a page is all of it (filesystems/sysfs.rst), and thousands are read
_ONE_VALUE = ("/sys/devices/", "/sys/kernel/irq/", "/proc/irq/", "/proc/sys/")


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
            while more := os.read(fd, _CHUNK):  # /proc gives a page at a time at most, whatever is asked for
                parts.append(more)
                if len(more) < _PAGE and path.startswith(_ONE_VALUE):
                    break
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

    def held(self, name: str) -> str | None:
        """The value that a process holds in /dev/NAME for us (Host.hold); None when there is none, or none any more."""
        import fcntl

        try:
            fd = os.open(self.root + HELD + name, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            # asked for, not taken: whoever may read cannot stand in the way of those who write
            answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, struct.pack(FLOCK, fcntl.F_RDLCK, 0, 0, 0, 0))
            free = struct.unpack(FLOCK, answer)[0] == fcntl.F_UNLCK
            return None if free else os.read(fd, 64).decode("ascii", "replace").strip()
        except OSError:
            return None
        finally:
            os.close(fd)

    def link(self, path: str) -> str | None:
        """Where a symbolic link points to; None when it is none."""
        try:
            return os.readlink(self.root + path)
        except OSError:
            return None

    def pin(self, path: str) -> int:
        """A descriptor that reads nothing and keeps the file's name in the kernel's memory; -1 when it is not there."""
        try:
            return os.open(self.root + path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return -1

    def inode(self, path: str) -> int:
        """The number of a file or folder, which in sysfs no other one gets again; 0 when it is not there."""
        try:
            return os.stat(self.root + path).st_ino
        except OSError:
            return 0

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""
        return os.path.exists(self.root + path)

    def asked(self, name: str, ask: Callable[[], str | None]) -> str | None:
        """An answer of the kernel that no file gives; a recorded tree has it as one (ANSWERS/NAME)."""
        return ask() if self.live else self.text(f"{ANSWERS}/{name}")

    def writable(self, path: str) -> bool:
        """Whether the kernel offers the file for writing at all (its mode, not this process's rights)."""
        try:
            return bool(os.stat(self.root + path).st_mode & 0o200)
        except OSError:
            return False
