"""Open paths below a root: unchanged on a live host, never outside the root in a recorded tree.

A tree may be untrusted. Its links are resolved inside it (openat2(2), RESOLVE_IN_ROOT), and only its regular files and
directories are opened: a FIFO would block, and a device could have side effects. Readers and Hosts open the
tree's files only through this module.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from quiet.errors import UsageError

_OPENAT2 = 437  # the same number on every architecture (include/uapi/asm-generic/unistd.h)
# struct open_how: flags, mode, resolve with RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS (include/uapi/linux/openat2.h)
_HOW = struct.pack("QQQ", os.O_PATH | os.O_CLOEXEC, 0, 0x10 | 0x02)


class Root:
    """A live host (root "/") or a recorded tree. Raises UsageError if the root is not a directory."""

    _fd = -1  # descriptor of the tree, opened on first use

    def __init__(self, root: str = "/") -> None:
        self.root = root.rstrip("/")
        if not root or (self.root and not os.path.isdir(self.root)):
            raise UsageError(f"--root {root}: no such directory; give the directory that holds sys/ and proc/")

    def __del__(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)

    @property
    def live(self) -> bool:
        """Whether the root is the running machine, not a recorded one."""
        return not self.root

    def named(self, path: str) -> str:
        """The path for messages, including the root."""
        return self.root + path

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        """Open a file (open(2)) and return its descriptor. Raises OSError.

        In a recorded tree, O_CREAT does not follow a final link.
        """
        flags |= os.O_CLOEXEC
        if not self.root:
            return os.open(path, flags, mode)
        flags |= os.O_NONBLOCK | os.O_NOCTTY
        if not flags & os.O_CREAT:
            fd = self._inside(path)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise OSError(errno.EINVAL, "not a regular file", self.named(path))
                return os.open(f"/proc/self/fd/{fd}", flags)
            finally:
                os.close(fd)
        with self.place(path, follow=False) as place:
            with contextlib.suppress(FileNotFoundError):
                if not stat.S_ISREG(os.lstat(place).st_mode):
                    raise OSError(errno.EINVAL, "not a regular file", self.named(path))
            return os.open(place, flags | os.O_NOFOLLOW, mode)

    def stat(self, path: str, follow: bool = True) -> os.stat_result:
        """The status of a file (stat(2), lstat(2)). Raises OSError."""
        if not self.root:
            return os.stat(path, follow_symlinks=follow)
        if not follow:
            with self.place(path, follow=False) as place:
                return os.lstat(place)
        fd = self._inside(path)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def access(self, path: str, mode: int) -> bool:
        """Whether this process may read (os.R_OK) or write (os.W_OK) the path."""
        try:
            with self.place(path) as place:
                return os.access(place, mode, effective_ids=True)
        except OSError:
            return False

    @contextmanager
    def place(self, path: str, follow: bool = True) -> Iterator[str]:
        """Yield a path that system calls can use for this path below the root. Raises OSError.

        With `follow`, the path refers to the existing target of links; otherwise to the entry itself, which may be a
        link or may not exist.
        """
        if not self.root:
            yield path
            return
        folder, _, name = path.rstrip("/").rpartition("/")
        if not follow and name in ("", ".", ".."):
            raise OSError(errno.EINVAL, "not the path of a file", self.named(path))
        fd = self._inside(path if follow else folder or "/")
        try:
            yield f"/proc/self/fd/{fd}" if follow else f"/proc/self/fd/{fd}/{name}"
        finally:
            os.close(fd)

    def _inside(self, path: str) -> int:
        """A descriptor (O_PATH) of a path's target inside the tree."""
        if self._fd < 0:
            self._fd = os.open(self.root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        call, last_error = _openat2()
        fd = call(_OPENAT2, self._fd, os.fsencode(path), _HOW, len(_HOW)) if "\0" not in path else -1
        if fd >= 0:
            return fd
        number = last_error() or errno.EINVAL
        if number == errno.ENOSYS:
            raise UsageError("--root: needs openat2(2), which this kernel (before Linux 5.6) or sandbox does not have")
        raise OSError(number, os.strerror(number), self.named(path))


@functools.cache
def _openat2() -> tuple[Callable[..., int], Callable[[], int]]:
    """The openat2 system call, and a function that returns its error number."""
    import ctypes  # slow to load, and not needed on a live host

    call = ctypes.CDLL(None, use_errno=True).syscall
    call.argtypes = (ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t)
    call.restype = ctypes.c_int
    return call, ctypes.get_errno
