"""Read the files of a host, below a given root.

A `Reader` cannot write, so `plan`, which only gets a Reader, cannot change anything. The text of an absent file is
None, never "".
"""

from __future__ import annotations

import contextlib
import os
import stat
import struct
from collections.abc import Callable

from quiet.errors import UsageError
from quiet.host.root import Root

ANSWERS = "/run/quiet-recorded"  # in a recorded tree, the recorded answers of its kernel
HELD = "/run/quiet/held."  # one record for each device that a process holds open for quiet
FLOCK = "hhqqi"  # struct flock: type, whence, start, length, pid
_CHUNK = 1 << 16
_PAGE = 4096
_MOST = 64 << 20  # maximum size of a file in a recorded tree, in bytes
# a value of less than a page needs only one read(2) (filesystems/sysfs.rst), which matters for thousands of files
_ONE_VALUE = ("/sys/devices/", "/sys/kernel/irq/", "/proc/irq/", "/proc/sys/")


class Reader(Root):
    """Read the files of a live host (root "/") or of a recorded tree."""

    def text(self, path: str) -> str | None:
        """The stripped content of a file; None if it is absent or cannot be read.

        In a recorded tree, a link to /dev/null reads as "". Raises UsageError like data().
        """
        try:
            return self.data(path).decode("utf-8", "surrogateescape").strip("\0 \t\n")
        except OSError:
            return "" if self._is_empty_link(path) else None

    def data(self, path: str) -> bytes:
        """The bytes of a file.

        Raises OSError; UsageError if a file of a recorded tree is larger than 64 MiB, far more than any kernel file.
        """
        fd = self.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            parts, size = [], 0
            while more := os.read(
                fd, _CHUNK
            ):  # /proc gives at most one page per read, regardless of the requested size
                parts.append(more)
                size += len(more)
                if len(more) < _PAGE and path.startswith(_ONE_VALUE):
                    break
                if size > _MOST and self.root:
                    raise UsageError(
                        f"--root {self.root}: {path} is larger than {_MOST >> 20} MiB, the limit for a recorded file"
                    )
        finally:
            os.close(fd)
        return b"".join(parts)

    def names(self, path: str) -> list[str]:
        """The names in a directory, sorted; empty if it does not exist or cannot be read."""
        try:
            with self.place(path) as place:
                return sorted(os.listdir(place))
        except OSError:
            return []

    def numbered(self, path: str, prefix: str = "") -> list[int]:
        """The numbers N of the entries named PREFIX+N in a directory, ascending: "/proc/irq" -> [0, 1, 24, ...]."""
        tails = (n[len(prefix) :] for n in self.names(path) if n.startswith(prefix))
        return sorted(int(tail) for tail in tails if tail.isascii() and tail.isdecimal())

    def at(self, path: str, offset: int, size: int) -> bytes | None:
        """`size` bytes at an offset of a device file, such as a CPU's registers; None if they cannot be read."""
        try:
            fd = self.open(path, os.O_RDONLY)
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
        """Read a file (the kernel's trace) page by page until it has no more data for now. Raises OSError.

        Not a generator: a suspended generator would keep the file open, and an open file pins its directory.
        """
        fd = self.open(path, os.O_RDONLY | os.O_NONBLOCK)
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
        """The value that a process holds in /dev/NAME for quiet (Host.hold); None if no process does."""
        import fcntl

        try:
            fd = self.open(HELD + name, os.O_RDONLY)
        except OSError:
            return None
        try:
            # test for a write lock without taking a lock: a process with only read permission cannot hold a write lock
            answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, struct.pack(FLOCK, fcntl.F_RDLCK, 0, 0, 0, 0))
            free = struct.unpack(FLOCK, answer)[0] == fcntl.F_UNLCK
            return None if free else os.read(fd, 64).decode("ascii", "replace").strip()
        except OSError:
            return None
        finally:
            os.close(fd)

    def link(self, path: str) -> str | None:
        """The target of a symbolic link; None if the path is not a link."""
        try:
            with self.place(path, follow=False) as place:
                return os.readlink(place)
        except OSError:
            return None

    def pin(self, path: str) -> int:
        """Open a file with O_PATH, so that the kernel keeps its name in memory. Returns the descriptor, or -1 if the
        file cannot be opened.
        """
        try:
            with self.place(path) as place:
                return os.open(place, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            return -1

    def inode(self, path: str) -> int:
        """The inode number of a file or directory (sysfs reuses no inode number); 0 if it does not exist."""
        try:
            return self.stat(path).st_ino
        except OSError:
            return 0

    def exists(self, path: str) -> bool:
        """Whether a file or directory exists."""
        try:
            self.stat(path)
        except OSError:
            return self._is_empty_link(path)
        return True

    def _is_empty_link(self, path: str) -> bool:
        """Whether a recorded tree has a link to /dev/null there, as for a masked unit; a tree contains no devices."""
        return bool(self.root) and Reader.link(self, path) == os.devnull

    def is_entry(self, path: str) -> bool:
        """Whether an entry with this name exists, even if it is a dangling link."""
        try:
            self.stat(path, follow=False)
        except OSError:
            return False
        return True

    def is_folder(self, path: str) -> bool:
        """Whether a directory exists."""
        try:
            return stat.S_ISDIR(self.stat(path).st_mode)
        except OSError:
            return False

    def asked(self, name: str, ask: Callable[[], str | None]) -> str | None:
        """An answer of the kernel that no file contains; a recorded tree has it in ANSWERS/NAME."""
        return ask() if self.live else self.text(f"{ANSWERS}/{name}")

    def writable(self, path: str) -> bool:
        """Whether the file's mode permits its owner to write; this process may still lack the permission."""
        try:
            return bool(self.stat(path).st_mode & 0o200)
        except OSError:
            return False
