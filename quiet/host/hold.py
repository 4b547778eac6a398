"""Hold devices open in small processes, for settings that last only while the device is open."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
import time

from quiet.host.files import Files
from quiet.host.proc import mounts
from quiet.host.reader import FLOCK, HELD, Reader

TIMESTAMPS = "timestamps"  # not a device, but it can be held in the same way
_SO_TIMESTAMP = 29  # include/uapi/asm-generic/socket.h


class Holder(Files):
    """Files, and values that last only while a process holds a device open."""

    def hold(self, name: str, value: int) -> None:
        """Write a number to /dev/NAME and keep it there: the device forgets the number when the file is closed.

        A small child process keeps the file open and holds a lock on a record. This process opens both and the child
        inherits them, so there is no moment in which the child runs without the lock. Otherwise, the child has only a
        pipe as standard input, its own session, an empty environment, / as its directory and, where permitted, the root
        cgroups. `name` may also be "timestamps", which holds a socket. Raises OSError.
        """
        import fcntl
        import subprocess

        self.release(name)
        opened = [self._forgetful(name, value)]
        try:
            opened.append(self.open(HELD + name, os.O_RDWR | os.O_CREAT | os.O_EXCL))
            held, record = opened
            os.fchmod(record, 0o644)  # every user may read it, regardless of the umask
            os.write(record, f"{value}\n".encode())
            fcntl.fcntl(record, fcntl.F_OFD_SETLK, struct.pack(FLOCK, fcntl.F_WRLCK, 0, 0, 0, 0))
            opened += os.pipe()
            # the process reads a line that never comes, because it holds the other end of the pipe
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
        except OSError:
            with contextlib.suppress(OSError):  # no process has the device open: nothing is held
                self.unlink(HELD + name)
            raise
        finally:
            for fd in opened:
                os.close(fd)
        for _ in range(1000):  # before exec, the child's arguments do not identify it
            if self._holds(process.pid, name):
                break
            time.sleep(0.001)
        process.returncode = 0  # do not wait for the child: it outlives this command
        self._leave_cgroups(process.pid)

    def release(self, name: str) -> None:
        """End the processes that hold /dev/NAME for quiet, if any; wait at most 10 s for the end of each."""
        import select
        import signal

        for pid in self._holders(name):
            with contextlib.suppress(ProcessLookupError):
                fd = os.pidfd_open(pid)
                try:
                    if pid in self._holders(name):  # the PID was not reused
                        signal.pidfd_send_signal(fd, signal.SIGKILL)
                        select.select([fd], [], [], 10)
                finally:
                    os.close(fd)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)  # if this process is its parent
        with contextlib.suppress(FileNotFoundError):
            self.unlink(HELD + name)

    def _forgetful(self, name: str, value: int) -> int:
        """Open /dev/NAME, write the value, and return the descriptor; the value is lost when the file is closed.

        For "timestamps", open a socket that makes the kernel time-stamp packets. Raises OSError.
        """
        if name == TIMESTAMPS:
            import socket

            self._only_live()
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
                made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMP, value)
                return made.detach()
        with self.place(f"/dev/{name}") as place:
            mode = os.stat(place).st_mode
            if self.root and (stat.S_ISCHR(mode) or stat.S_ISBLK(mode)):
                raise OSError(errno.EINVAL, "this is a device of the host, not a file of the recorded tree")
            device = os.open(place, os.O_WRONLY | os.O_CLOEXEC | (os.O_NONBLOCK if self.root else 0))
        try:
            os.write(device, struct.pack("i", value))
        except OSError:
            os.close(device)
            raise
        return device

    def _holders(self, name: str) -> list[int]:
        """The processes that hold a device, identified by their command line and their output device."""
        return [pid for pid in Reader().numbered("/proc") if self._holds(pid, name)]

    def _holds(self, pid: int, name: str) -> bool:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                ours = _mark(name).encode() in file.read()
            return ours and self._is_held(name, f"/proc/{pid}/fd/1")
        except OSError:
            return False  # the process has just ended

    def _is_held(self, name: str, output: str) -> bool:
        if name == TIMESTAMPS:
            return self.live and stat.S_ISSOCK(os.stat(output).st_mode)
        return os.path.samestat(os.stat(output), self.stat(f"/dev/{name}"))

    def _leave_cgroups(self, pid: int) -> None:
        """Move a process to the root of each cgroup hierarchy, so that a session or service that ends need not wait for
        it.
        """
        for mount in mounts(self) if self.live else ():
            if mount.type in ("cgroup", "cgroup2"):
                with contextlib.suppress(OSError):  # neither permitted nor needed in a container
                    self.write(f"{mount.path}/cgroup.procs", str(pid))


def _mark(name: str) -> str:
    """The arguments of a holding process, which `ps` shows and by which quiet identifies the process."""
    return f"# quiet holds /dev/{name}"
