"""A host held in memory: fast enough for ten thousand of them, and as strict as a kernel.

Only the journal is on disk, below the root that is given. What a kernel does by itself is here where the laws of
quiet lean on it: CPUs that go take their place out of the list of online ones, choices keep their brackets, a cgroup
has its files at once.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from quiet import cpulist
from quiet.errors import UsageError
from quiet.host.host import Host
from quiet.host.proc import status_field
from quiet.machine.facts import Facts
from tests.trees import CPU

if TYPE_CHECKING:
    from collections.abc import Iterator

_CPU = f"/{CPU}"
Law = Callable[["Memory", str, str], str]


class Killed(BaseException):
    """The process is gone: nothing of it may run any more that could mend what it left."""


class Memory(Host):
    """Files in a dictionary. `laws` see each write before it is done: they raise OSError, or make another value."""

    def __init__(self, root: str, files: Mapping[str, str], closed: frozenset[str] = frozenset()) -> None:
        super().__init__(root)
        self.files: dict[str, str] = {}
        self.folders: dict[str, set[str]] = {"": set()}
        self.closed = closed  # files whose mode says that nobody may write them
        self.laws: list[Law] = []
        self.writes = 0
        self.verdict = "isolated"
        self.holding: dict[str, str] = {}
        self.links: dict[str, str] = {}
        for name, text in files.items():
            self.add("/" + name, text)

    def add(self, path: str, text: str) -> None:
        """Create a file, or a directory where the path ends with a slash."""
        if not path.endswith("/"):
            self.files[path] = text
        path = path.rstrip("/")
        if path not in self.files:
            self.folders.setdefault(path, set())
        while path:
            folder, _, name = path.rpartition("/")
            names = self.folders.setdefault(folder, set())
            if name in names:
                break
            names.add(name)
            path = folder

    def drop(self, path: str) -> None:
        """Take a file away, or a directory with all that is in it."""
        for name in list(self.folders.pop(path, ())):
            self.drop(f"{path}/{name}")
        self.files.pop(path, None)
        folder, _, name = path.rpartition("/")
        self.folders.get(folder, set()).discard(name)

    def text(self, path: str) -> str | None:
        """As Reader.text."""
        if path.startswith("/run/quiet/"):
            return super().text(path)
        found = self.files.get(path)
        return None if found is None else found.strip("\0 \t\n")

    def names(self, path: str) -> list[str]:
        """As Reader.names."""
        return sorted(self.folders.get(path.rstrip("/"), ()))

    def exists(self, path: str) -> bool:
        """As Reader.exists."""
        return path in self.files or path.rstrip("/") in self.folders

    def writable(self, path: str) -> bool:
        """As Reader.writable."""
        return path in self.files and path not in self.closed

    def write(self, path: str, value: str) -> None:
        """As the kernel: the laws first, then what follows from the write."""
        self._step(path)
        for law in self.laws:
            value = law(self, path, value)
        found = self.files[path]
        if path.endswith("/cgroup.subtree_control"):
            names = found.split()
            value = " ".join([*names, value[1:]] if value[0] == "+" else [n for n in names if n != value[1:]])
        elif path.endswith("/tasks") and value.isdecimal():
            self._move(path, value)
            return
        elif path.endswith(".partition") and value == "isolated":
            value = self.verdict
        elif "[" in found and value != found:
            value = self._choose(found, value)
        elif path.endswith(("smp_affinity_list", "watchdog_cpumask")):
            value = self._cpus(value)
        elif path == f"{_CPU}/smt/control":
            self._smt(value)
        self.files[path] = value
        if path.endswith("/cpumask") and f"{path}_requested" in self.files:
            self.files[f"{path}_requested"] = value
            possible = cpulist.parse(self.files.get(f"{_CPU}/possible", ""))
            if possible & cpulist.parse_mask(value):
                self.files[path] = cpulist.format_mask(possible & cpulist.parse_mask(value))
        if path.startswith(f"{_CPU}/cpu") and path.endswith("/online"):
            self._online(path, value)

    def mkdir(self, path: str) -> None:
        """A cgroup has its files at once."""
        self._step(path.rpartition("/")[0], folder=True)
        if self.exists(path):
            raise OSError(errno.EEXIST, "File exists")
        self.add(path + "/", "")
        if path.startswith("/sys/fs/cgroup"):
            mems = self.files.get(path.rpartition("/")[0] + "/cpuset.mems")
            names = {"cpuset.cpus": "", "cpuset.cpus.partition": "member", "cgroup.procs": "", "cgroup.threads": ""}
            if mems is not None:  # version 1
                names = {"cpuset.cpus": "", "cpuset.mems": "", "tasks": ""}
                names |= {"cpuset.cpu_exclusive": "0", "cpuset.sched_load_balance": "1"}
            for name, text in names.items():
                self.add(f"{path}/{name}", text)

    def rmdir(self, path: str) -> None:
        """A cgroup goes with its files, but not while it is a partition."""
        self._step(path, folder=True)
        if self.text(f"{path}/cpuset.cpus.partition") not in (None, "member"):
            raise OSError(errno.EBUSY, "Device or resource busy")
        self.drop(path)

    def set_affinity(self, tid: int, cpus: str) -> None:
        """As sched_setaffinity(2)."""
        path = f"/proc/{tid}/status"
        self._step(path)
        for law in self.laws:
            law(self, path, cpus)
        leader = (status_field(self.text(path), "Tgid") or tid, tid)
        for name in (path, "/proc/{}/task/{}/status".format(*leader)):
            if (text := self.files.get(name)) is not None:
                head, key, tail = text.partition("\nCpus_allowed_list:\t")
                _, end, rest = tail.partition("\n")
                self.files[name] = f"{head}{key}{self._cpus(cpus)}{end}{rest}"

    def signal(self, pid: int, name: str) -> None:
        """A process stops and continues."""
        self._step(f"/proc/{pid}/stat")
        old, new = (") S ", ") T ") if name == "SIGSTOP" else (") T ", ") S ")
        self.files[f"/proc/{pid}/stat"] = self.files[f"/proc/{pid}/stat"].replace(old, new)

    def systemctl(self, *args: str) -> None:
        """A unit comes and goes with its cgroup; any other request is refused."""
        folder = f"/sys/fs/cgroup/system.slice/{args[-1]}"
        if len(args) != 2 or args[0] not in ("start", "stop"):
            raise OSError(errno.EOPNOTSUPP, "not here")
        self._step(folder, folder=args[0] == "stop")
        if args[0] == "start":
            self.add(folder + "/", "")
        else:
            self.drop(folder)

    def held(self, name: str) -> str | None:
        """As Reader.held."""
        return self.holding.get(name)

    def hold(self, name: str, value: int) -> None:
        """As Host.hold, without a process."""
        self._step(f"/dev/{name}")
        for law in self.laws:
            law(self, f"/dev/{name}", str(value))
        self.holding[name] = str(value)

    def release(self, name: str) -> None:
        """As Host.release."""
        self.holding.pop(name, None)

    def link(self, path: str) -> str | None:
        """As Reader.link."""
        return self.links.get(path)

    def symlink(self, path: str, to: str) -> None:
        """Make a link; what it leads to counts as an empty file."""
        self._step("", folder=True)
        self.links[path] = to
        self.add(path, "")

    def create(self, path: str, text: str) -> None:
        """Make a file."""
        self._step("", folder=True)
        self.add(path, text)

    def unlink(self, path: str) -> None:
        """Remove a file or a link."""
        self._step(path)
        self.links.pop(path, None)
        self.drop(path)

    def _step(self, path: str, folder: bool = False) -> None:
        self.writes += 1
        if path not in (self.folders if folder else self.files) and not path.startswith("/sys/fs/cgroup/system.slice"):
            ended = path.endswith(("/status", "/stat"))
            raise OSError(errno.ESRCH if ended else errno.ENOENT, "No such process" if ended else "No such file")

    def _choose(self, found: str, value: str) -> str:
        offered = found.replace("[", "").replace("]", "").split()
        if value not in offered:
            raise OSError(errno.EINVAL, "Invalid argument")
        return " ".join(f"[{name}]" if name == value else name for name in offered)

    def _cpus(self, value: str) -> str:
        wanted, online = cpulist.parse(value), self.files.get(f"{_CPU}/online")
        try:
            if online and not wanted & cpulist.parse(online):
                raise OSError(errno.EINVAL, "Invalid argument")
        except UsageError:
            return value
        return cpulist.format(wanted)

    def _move(self, path: str, tid: str) -> None:
        group = path.removeprefix("/sys/fs/cgroup/cpuset").removesuffix("/tasks") or "/"
        if f"/proc/{tid}/cpuset" not in self.files:
            raise OSError(errno.ESRCH, "No such process")
        self.files[f"/proc/{tid}/cpuset"] = group

    def _online(self, path: str, value: str) -> None:
        number = int(path[len(f"{_CPU}/cpu") :].partition("/")[0])
        listed = self.files.get(f"{_CPU}/online")
        if listed is not None:
            now = cpulist.parse(listed) - {number} | ({number} if value != "0" else frozenset())
            self.files[f"{_CPU}/online"] = cpulist.format(now)

    def _smt(self, value: str) -> None:
        """Off takes every thread but the first of each core; on brings up all, also what was off before."""
        for number in self.numbered(_CPU, "cpu"):
            path = f"{_CPU}/cpu{number}/online"
            if number != min(Facts(self).siblings(number)) and path in self.files:
                self.files[path] = "0" if value == "off" else "1"
                self._online(path, self.files[path])


@contextmanager
def dying(at: int, torn: bool = False) -> Iterator[None]:
    """Everything in here ends with Killed at its n-th step: a write to the host or the journal, or its fsync.

    `torn`: in the middle of a line of the journal. At 0 nothing dies, and nothing waits for a disk either.
    """
    write, fsync, change = os.write, os.fsync, Memory._step
    steps = iter(range(1, 1 << 30))

    def dying_write(fd: int, data: bytes) -> int:
        if next(steps) == at:
            if torn:
                write(fd, data[: len(data) // 2])
            raise Killed
        return write(fd, data)

    def dying_fsync(fd: int) -> None:
        if next(steps) == at:
            raise Killed

    def dying_step(self: Memory, path: str, folder: bool = False) -> None:
        if next(steps) == at:
            raise Killed
        change(self, path, folder)

    os.write, os.fsync, Memory._step = dying_write, dying_fsync, dying_step  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        os.write, os.fsync, Memory._step = write, fsync, change  # type: ignore[method-assign]
