"""The host: the only module that opens /sys and /proc, under a root that is an argument.

A `Reader` cannot write, so what is handed to `plan` cannot change anything. Absent is None, never "" or 0.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import struct
import time
from collections.abc import Callable, Sequence

from quiet import cpulist
from quiet.errors import UsageError

ANSWERS = "/run/quiet-recorded"  # in a recorded tree, what its kernel had answered
_CHUNK = 1 << 16
_PAGE = 4096
# one value a file, made in one go: less than a page is all of it (filesystems/sysfs.rst), and thousands are read
_ONE_VALUE = ("/sys/devices/", "/sys/kernel/irq/", "/proc/irq/", "/proc/sys/")
_HELD = "/run/quiet/held."  # one record for each device file that a process holds open for us
TIMESTAMPS = "timestamps"  # what can be held besides devices
_SO_TIMESTAMP = 29  # include/uapi/asm-generic/socket.h
_FLOCK = "hhqqi"  # struct flock: type, whence, start, length, pid


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
            fd = os.open(self.root + _HELD + name, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            # asked for, not taken: whoever may read cannot stand in the way of those who write
            answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, struct.pack(_FLOCK, fcntl.F_RDLCK, 0, 0, 0, 0))
            free = struct.unpack(_FLOCK, answer)[0] == fcntl.F_UNLCK
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


class Host(Reader):
    """Writes too. Every method raises OSError with the kernel's errno when the kernel refuses."""

    _units: dict[str, tuple[str, str]] | None = None

    def write(self, path: str, value: str) -> None:
        """Write a value in one write(2), as sysfs and procfs want it."""
        self._only_inside(path)
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

    def systemctl(self, *args: str) -> str:
        """Run systemctl to its end, and what it printed; OSError when it fails or is not there."""
        self._units = None  # it may change them
        return self.run("systemctl", *args, seconds=120)

    def run(self, *command: str, seconds: float = 600) -> str:
        """Run a program to its end, and what it printed; OSError when it fails, takes longer or is not there."""
        import subprocess  # seldom needed, and slow to load

        self._only_live()
        said = " ".join(command)
        # cron and services may start without the folders that hold what only root runs
        folders = ":".join(filter(None, (os.environ.get("PATH"), "/usr/sbin:/sbin:/usr/bin:/bin")))
        environment = {**os.environ, "PATH": folders}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=seconds, env=environment
            )
        except subprocess.TimeoutExpired:
            raise OSError(errno.ETIMEDOUT, f"{said} did not end within {seconds / 60:g} minutes") from None
        except FileNotFoundError:
            raise OSError(errno.ENOENT, f"{command[0]}: no such program") from None
        if done.returncode:
            raise OSError(errno.EIO, done.stderr.strip() or f"{said} ended with {done.returncode}")
        return done.stdout

    def hold(self, name: str, value: int) -> None:
        """Keep a number written to /dev/NAME, a device that forgets it when the file is closed; or to a socket.

        A small process has the file open, and a locked record. Both are opened here and inherited, so there is no
        moment in which it lives and the lock does not tell. It keeps nothing else of the caller: no terminal, folder,
        cgroup or further file.
        """
        import fcntl
        import subprocess

        self.release(name)
        opened = [self._forgetful(name, value)]
        try:
            opened.append(os.open(self.root + _HELD + name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
            held, record = opened
            os.write(record, f"{value}\n".encode())
            fcntl.fcntl(record, fcntl.F_OFD_SETLK, struct.pack(_FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0))
            opened += os.pipe()
            # it waits for a line that nobody writes: it has the pipe's other end itself
            process = subprocess.Popen(
                ["/bin/sh", "-c", f"read -r line {_mark(name)} at {value} until quiet restore"],
                stdin=opened[2],
                stdout=held,
                stderr=record,
                pass_fds=opened[3:],
                start_new_session=True,
                cwd="/",
                env={},
            )
        finally:
            for fd in opened:
                os.close(fd)
        for _ in range(1000):  # it cannot be told from others until the kernel has its arguments, which is after exec
            if self._holds(process.pid, name):
                break
            time.sleep(0.001)
        process.returncode = 0  # nobody waits for it here: it outlives this command
        self._leave_cgroups(process.pid)

    def _forgetful(self, name: str, value: int) -> int:
        """The open file that keeps the value: "timestamps" is a socket whose packets get time stamps."""
        if name == TIMESTAMPS:
            import socket

            self._only_live()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
                made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMP, value)
                return made.detach()
        self._only_inside(f"/dev/{name}")
        device = os.open(f"{self.root}/dev/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(device, struct.pack("i", value))
        except OSError:
            os.close(device)
            raise
        return device

    def release(self, name: str) -> None:
        """End the processes that hold /dev/NAME for us, and return when they are gone; nothing when there are none."""
        import select

        for pid in self._holders(name):
            with contextlib.suppress(ProcessLookupError):
                fd = os.pidfd_open(pid)
                try:
                    if pid in self._holders(name):  # it is still the same process
                        signal.pidfd_send_signal(fd, signal.SIGKILL)
                        select.select([fd], [], [], 10)
                finally:
                    os.close(fd)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # where it was started by this very process
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.root + _HELD + name)

    def _holders(self, name: str) -> list[int]:
        """Known by what they say of themselves and by the device that is their output."""
        return [pid for pid in Reader().numbered("/proc") if self._holds(pid, name)]

    def _holds(self, pid: int, name: str) -> bool:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                ours = _mark(name).encode() in file.read()
            return ours and self._is_held(name, f"/proc/{pid}/fd/1")
        except OSError:
            return False  # it ended just now

    def _is_held(self, name: str, output: str) -> bool:
        if name == TIMESTAMPS:
            return self.live and stat.S_ISSOCK(os.stat(output).st_mode)
        return os.path.samefile(output, f"{self.root}/dev/{name}")

    def _leave_cgroups(self, pid: int) -> None:
        """Move a process to the root of each hierarchy: a session or service that ends must not wait for it."""
        for line in (self.text("/proc/mounts") or "").splitlines() if self.live else ():
            fields = line.split(" ")
            if len(fields) > 2 and fields[2] in ("cgroup", "cgroup2"):
                with contextlib.suppress(OSError):  # not permitted in a container, nor needed there
                    self.write(f"{fields[1]}/cgroup.procs", str(pid))

    def _only_inside(self, path: str) -> None:
        if not self.live and not os.path.realpath(self.root + path).startswith(os.path.realpath(self.root) + "/"):
            raise OSError(errno.EXDEV, f"{path} leads out of the tree")  # a recording may hold absolute links

    def unit_states(self) -> dict[str, tuple[str, str]]:
        """(load state, active state) of the units that systemd has loaded; asked once, and again after a systemctl."""
        if self._units is None:
            units = {}
            with contextlib.suppress(OSError):
                kinds = "--type=service,timer,socket,path,target,mount"
                listed = self.run("systemctl", "list-units", "--all", "--full", "--plain", "--no-legend", kinds)
                rows = (line.split(None, 4) for line in listed.splitlines())
                units = {row[0]: (row[1], row[2]) for row in rows if len(row) > 3}
            self._units = units
        return self._units

    def unit_properties(self, units: Sequence[str], properties: Sequence[str]) -> dict[str, dict[str, str]]:
        """Properties of units as systemctl shows them, by the units' names."""
        shown = self.run("systemctl", "show", f"--property=Id,{','.join(properties)}", "--", *units)
        lines = (block.splitlines() for block in shown.split("\n\n"))
        blocks = (dict(line.split("=", 1) for line in block if "=" in line) for block in lines)
        return {block.pop("Id"): block for block in blocks if "Id" in block}

    def _only_live(self) -> None:
        if not self.live:
            raise OSError(errno.EOPNOTSUPP, "a recorded tree has no processes to change")


def _mark(name: str) -> str:
    """What the arguments of a holder say, for `ps` and for us."""
    return f"# quiet holds /dev/{name}"
