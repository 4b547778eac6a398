"""Archives that the kernel unpacks as its first root (initramfs): cpio, "newc" format.

Source: Documentation/driver-api/early-userspace/buffer-format.rst. Several archives, one after the other, are unpacked
over each other. Every file is root's and of no time, so that the same files make the same archive, whoever packs them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO

Keep = Callable[[str], bool]


class Archive:
    """Writes to an open file; `close` ends the archive, not the file."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.number = file, 0
        self.folders: set[str] = set()

    def data(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self._parents(name)
        self._entry(name, stat.S_IFREG | mode, content)

    def link(self, name: str, target: str) -> None:
        self._parents(name)
        self._entry(name, stat.S_IFLNK | 0o777, target.encode())

    def folder(self, name: str, mode: int = 0o755) -> None:
        if name and name not in self.folders:
            self._parents(name)
            self.folders.add(name)
            self._entry(name, stat.S_IFDIR | mode, b"", links=2)

    def device(self, name: str, major: int, minor: int) -> None:
        """A character device; nothing is made on this machine, so it needs no right."""
        self._parents(name)
        self._entry(name, stat.S_IFCHR | 0o600, b"", device=(major, minor))

    def tree(self, root: Path, keep: Keep = lambda name: True, prefix: str = "") -> None:
        """All that lies under a directory and that is kept by its name there; a directory that is not kept is not
        entered.
        """
        for entry in sorted(os.scandir(root), key=lambda entry: entry.name):
            self._add(entry, entry.name, keep, prefix)

    def close(self) -> None:
        self.number = 0
        self._entry("TRAILER!!!", 0, b"")
        self.file.write(bytes(-self.file.tell() % 512))

    def _add(self, entry: os.DirEntry[str], name: str, keep: Keep, prefix: str) -> None:
        if not keep(name):
            return
        mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
        if entry.is_symlink():
            self.link(prefix + name, os.readlink(entry.path))
        elif entry.is_dir():
            self.folder(prefix + name, mode)
            for inner in sorted(os.scandir(entry.path), key=lambda inner: inner.name):
                self._add(inner, f"{name}/{inner.name}", keep, prefix)
        else:
            self.data(prefix + name, Path(entry.path).read_bytes(), mode)

    def _parents(self, name: str) -> None:
        above, _, _ = name.rpartition("/")
        self.folder(above)

    def _entry(self, name: str, mode: int, content: bytes, links: int = 1, device: tuple[int, int] = (0, 0)) -> None:
        self.number += 1
        path = name.encode() + b"\0"
        # inode, mode, uid, gid, links, time, size, device (2), the device it is (2), length of the name, checksum
        fields = (self.number, mode, 0, 0, links, 0, len(content), 0, 0, *device, len(path), 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields) + path
        self.file.write(header + bytes(-len(header) % 4) + content + bytes(-len(content) % 4))
