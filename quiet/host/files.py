"""Write the files of a host."""

from __future__ import annotations

import contextlib
import errno
import os

from quiet.host.reader import ANSWERS, Reader


class Files(Reader):
    """A Reader that also writes files. The methods that write raise OSError with the kernel's errno on failure."""

    def write(self, path: str, value: str) -> None:
        """Write a value in one write(2), as sysfs and procfs require."""
        if not self.live:
            value = self._shown(path, value)
        fd = self.open(path, os.O_WRONLY | (0 if self.live else os.O_TRUNC))
        try:
            os.write(fd, value.encode("utf-8", "surrogateescape") + b"\n")
        finally:
            os.close(fd)

    def answer(self, name: str, value: str) -> None:
        """In a recorded tree, replace the recorded answer of the kernel (Reader.asked)."""
        self.write(f"{ANSWERS}/{name}", value)

    def mkdir(self, path: str) -> None:
        """Create a directory (a cgroup, in a cgroup file system)."""
        with self.place(path, follow=False) as place:
            os.mkdir(place)

    def symlink(self, path: str, to: str) -> None:
        """Create a symbolic link."""
        with self.place(path, follow=False) as place:
            os.symlink(to, place)

    def create(self, path: str, text: str) -> None:
        """Create or replace a file atomically."""
        with self.place(path, follow=False) as place:
            new = f"{place}.new"
            with contextlib.suppress(FileNotFoundError):
                os.unlink(new)  # left by a killed process
            fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
            with open(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
                os.fchmod(fd, 0o644)  # regardless of the umask
                file.write(text)
                file.flush()
                os.fsync(fd)
            os.rename(new, place)

    def unlink(self, path: str) -> None:
        """Remove a file or a link."""
        with self.place(path, follow=False) as place:
            os.unlink(place)

    def rmdir(self, path: str) -> None:
        """Remove a directory that is empty, except for the kernel's files in a cgroup."""
        with self.place(path, follow=False) as place:
            os.rmdir(place)

    def _shown(self, path: str, value: str) -> str:
        """The content that the kernel would show after this write, so that a restore of a recorded tree is exact."""
        before = self.text(path) or ""
        if path.endswith("/cgroup.subtree_control") and value[:1] in ("+", "-"):
            names = [name for name in before.split() if name != value[1:]]
            return " ".join([*names, value[1:]] if value[0] == "+" else names)
        if path.endswith("/cpumask") and self.text(path + "_requested") == before:
            self.write(path + "_requested", value)  # without a partition, both masks are equal
        offered = before.replace("[", "").replace("]", "").split()
        if "[" in before and value in offered:
            return " ".join(f"[{name}]" if name == value else name for name in offered)
        return value

    def _only_live(self) -> None:
        if not self.live:
            raise OSError(errno.EOPNOTSUPP, "processes cannot be changed in a recorded tree (--root)")
