"""Read and atomically write persistent files, with modes, owners and times, below the reader's root."""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass

from quiet.errors import Refused
from quiet.host.reader import Reader

_NEW = ".quiet-new"  # boot loaders ignore files with this suffix
_LABEL = "security.selinux"
_LINKS = 40  # the kernel's limit on symbolic links


@dataclass(frozen=True, slots=True)
class Saved:
    """The state of a file: its bytes, permission bits, owner, and times in nanoseconds."""

    data: bytes
    mode: int
    uid: int
    gid: int
    atime_ns: int
    mtime_ns: int


class Disk:
    """The files of a live host or of a recorded tree. Methods that write raise OSError on failure."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader

    def load(self, path: str) -> Saved | None:
        """The state of a file; None if it does not exist. Raises Refused if it cannot be read."""
        self.reader.text(path)  # a recording reader remembers the requested paths
        try:
            fd = self.reader.open(path, os.O_RDONLY)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except PermissionError:
            raise Refused(f"{path} cannot be read; run this with sudo") from None
        with open(fd, "rb") as file:
            facts = os.fstat(fd)
            return Saved(
                file.read(), facts.st_mode & 0o7777, facts.st_uid, facts.st_gid, facts.st_atime_ns, facts.st_mtime_ns
            )

    def data(self, path: str) -> bytes | None:
        """A file's bytes; None if it does not exist. Raises Refused if it cannot be read."""
        saved = self.load(path)
        return saved.data if saved else None

    def save(self, path: str, data: bytes, like: Saved | None = None, times: bool = False) -> None:
        """Write a file atomically and flush it to disk, with the mode and owner of `like`, and with its times if
        `times`. Without `like`, the mode is 0644 and the owner is the caller.
        """
        real = self._real(path)
        with self.reader.place(real, follow=False) as place:
            new = place + _NEW
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)  # left by a killed process
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                with contextlib.suppress(PermissionError, OSError):  # FAT has no owners
                    os.fchown(fd, like.uid, like.gid) if like else None  # without `like`, the caller owns the file
                with contextlib.suppress(PermissionError):
                    os.fchmod(fd, like.mode if like else 0o644)
                with contextlib.suppress(OSError):  # without SELinux there is no label
                    os.setxattr(fd, _LABEL, os.getxattr(place, _LABEL))
                if like and times:
                    os.utime(fd, ns=(like.atime_ns, like.mtime_ns))
                os.fsync(fd)
            os.replace(new, place)
            self._sync(os.path.dirname(place))

    def restore(self, path: str, saved: Saved | None) -> None:
        """Restore a file to its saved state; None: remove it, because it did not exist."""
        if saved is not None:
            self.save(path, saved.data, saved, times=True)
        else:
            self.remove(path)

    def remove(self, path: str) -> None:
        """Remove a file if it exists."""
        real = self._real(path)
        if not self.reader.is_entry(real):
            return  # on a read-only disk, unlink(2) of a missing file fails with EROFS, not ENOENT
        with contextlib.suppress(FileNotFoundError), self.reader.place(real, follow=False) as place:
            os.unlink(place)
            self._sync(os.path.dirname(place))

    def clean(self, path: str) -> None:
        """Remove the temporary file of a killed `save`."""
        self.remove(path + _NEW)

    def beside(self, path: str) -> list[str]:
        """The paths of all entries in the directory of a file."""
        folder = os.path.dirname(path)
        return [f"{folder}/{name}" for name in self.reader.names(folder)]

    def names(self, folder: str) -> list[str]:
        """The names in a directory, sorted; empty if the directory does not exist. Raises Refused if it cannot be
        read.
        """
        self.reader.names(folder)  # a recording reader remembers the requested paths
        try:
            with self.reader.place(folder) as place:
                return sorted(os.listdir(place))
        except PermissionError:
            raise Refused(f"{folder} cannot be read; run this with sudo") from None
        except OSError:
            return []

    def torn(self, path: str) -> bool:
        """Whether a killed `save` left its temporary file beside this file."""
        return self.reader.exists(self._real(path) + _NEW)

    def make_folders(self, path: str) -> list[str]:
        """Create the missing parent directories of a file. Returns them, the outermost first."""
        missing = self.missing_folders(path)
        for folder in missing:
            if self.reader.is_entry(folder):
                raise NotADirectoryError(errno.ENOTDIR, "a file is where a directory is needed")
            with self.reader.place(folder, follow=False) as place:
                os.mkdir(place, 0o755)
        return missing

    def missing_folders(self, path: str) -> list[str]:
        """The missing parent directories of a file, the outermost first."""
        found = []
        folder = os.path.dirname(path)
        while folder not in ("", "/") and not self.reader.is_folder(folder):
            found.append(folder)
            folder = os.path.dirname(folder)
        return found[::-1]

    def remove_folder(self, path: str) -> None:
        """Remove a directory that quiet created, if it is empty."""
        with contextlib.suppress(OSError), self.reader.place(path, follow=False) as place:
            os.rmdir(place)

    def _real(self, path: str) -> str:
        """Resolve a symbolic link, so that a write replaces the target and keeps the link. Raises OSError."""
        for _ in range(_LINKS):
            to = self.reader.link(path)
            if to is None:
                return path
            path = os.path.join(os.path.dirname(path), to)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def _sync(self, folder: str) -> None:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
