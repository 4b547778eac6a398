"""Writing the files of a host."""

from __future__ import annotations

import errno
import os

from quiet.host.reader import ANSWERS, Reader


class Files(Reader):
    """Writes too. Every method raises OSError with the kernel's errno when the kernel refuses."""

    def write(self, path: str, value: str) -> None:
        """Write a value in one write(2), as sysfs and procfs want it."""
        self._only_inside(path)
        if not self.live:
            value = self._shown(path, value)
        fd = os.open(self.root + path, os.O_WRONLY | os.O_CLOEXEC | (0 if self.live else os.O_TRUNC))
        try:
            os.write(fd, value.encode("utf-8", "surrogateescape") + b"\n")
        finally:
            os.close(fd)

    def answer(self, name: str, value: str) -> None:
        """Change what a recorded tree has as the kernel's answer."""
        self.write(f"{ANSWERS}/{name}", value)

    def mkdir(self, path: str) -> None:
        """Make a directory (a cgroup, on a live host)."""
        os.mkdir(self.root + path)

    def symlink(self, path: str, to: str) -> None:
        """Make a symbolic link."""
        os.symlink(to, self.root + path)

    def create(self, path: str, text: str) -> None:
        """Make a file, whole or not at all; one that is there is replaced."""
        with open(f"{self.root}{path}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(f"{self.root}{path}.new", self.root + path)

    def unlink(self, path: str) -> None:
        """Remove a file or a link."""
        os.unlink(self.root + path)

    def rmdir(self, path: str) -> None:
        """Remove an empty directory (a cgroup's own files do not count)."""
        os.rmdir(self.root + path)

    def _shown(self, path: str, value: str) -> str:
        """What the kernel of a recorded tree would show after this write: otherwise a restore could not be exact."""
        before = self.text(path) or ""
        if path.endswith("/cgroup.subtree_control") and value[:1] in ("+", "-"):
            names = [name for name in before.split() if name != value[1:]]
            return " ".join([*names, value[1:]] if value[0] == "+" else names)
        if path.endswith("/cpumask") and self.text(path + "_requested") == before:
            self.write(path + "_requested", value)  # without a partition both are the same
        offered = before.replace("[", "").replace("]", "").split()
        if "[" in before and value in offered:
            return " ".join(f"[{name}]" if name == value else name for name in offered)
        return value

    def _only_inside(self, path: str) -> None:
        if not self.live and not os.path.realpath(self.root + path).startswith(os.path.realpath(self.root) + "/"):
            raise OSError(errno.EXDEV, f"{path} leads out of the tree")  # a recording may hold absolute links

    def _only_live(self) -> None:
        if not self.live:
            raise OSError(errno.EOPNOTSUPP, "a recorded tree has no processes to change")
