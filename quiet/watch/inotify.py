"""Report writes to files with inotify(7), through libc.

A write(2) by any process is reported, including writes to sysfs, procfs and cgroup files. A change by the kernel itself
is reported only for files that notify, such as cpuset.cpus.partition and cgroup.events (cgroup-v2.rst).
"""

from __future__ import annotations

import ctypes
import os
import struct

from quiet.host.reader import Reader

MODIFY, CREATE, DELETE, DELETE_SELF, OVERFLOW, IGNORED = 0x2, 0x100, 0x200, 0x400, 0x4000, 0x8000
_HEAD = struct.Struct("iIII")
_MOST = 4096  # maximum number of files; each takes about a kilobyte of the kernel's memory
_BUFFER = 1 << 16


class Inotify:
    """Watches files and directories of a host. Raises OSError if the kernel has no inotify."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = int(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify is not available")
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}
        self._pins: dict[str, int] = {}
        self.lost = False  # the queue overflowed, so notifications are missing
        self.left_out = 0  # number of files that cannot be watched, or exceed the limit

    def fileno(self) -> int:
        return self._fd

    def __len__(self) -> int:
        return len(self._paths)

    def add(self, path: str, mask: int = MODIFY) -> None:
        """Watch one more file (or directory); missing or already watched files are ignored."""
        if path in self._numbers or not self._reader.exists(path):
            return
        if len(self._paths) >= _MOST:
            self.left_out += 1
            return
        with self._reader.place(path) as place:
            name = os.fsencode(place)
            number = int(self._libc.inotify_add_watch(self._fd, name, ctypes.c_uint32(mask | DELETE_SELF)))
        if number < 0:
            self.left_out += 1
            return
        self._paths[number], self._numbers[path] = path, number
        if path.startswith("/proc/"):
            # when the kernel drops the name from its cache, procfs creates a new inode, and the watch would stay on the
            # old inode
            self._pins[path] = self._reader.pin(path)

    def read(self) -> list[tuple[str, str]]:
        """The files and directories that changed, each with the name of the changed entry in a directory ("" for a
        file).
        """
        notifications: list[tuple[str, str]] = []
        while True:
            try:
                data = os.read(self._fd, _BUFFER)
            except BlockingIOError:
                return notifications
            at = 0
            while at < len(data):
                number, mask, _, size = _HEAD.unpack_from(data, at)
                name = data[at + _HEAD.size : at + _HEAD.size + size].rstrip(b"\0").decode(errors="replace")
                at += _HEAD.size + size
                self.lost |= bool(mask & OVERFLOW)
                if path := self._paths.get(number):
                    notifications.append((path, name))
                    if mask & IGNORED:
                        self._forget(number, path)

    def _forget(self, number: int, path: str) -> None:
        del self._paths[number], self._numbers[path]
        if (pin := self._pins.pop(path, -1)) >= 0:
            os.close(pin)

    def close(self) -> None:
        """Stop watching."""
        for pin in self._pins.values():
            if pin >= 0:
                os.close(pin)
        self._pins = {}
        os.close(self._fd)
