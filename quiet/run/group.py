"""Manage the processes of one run; if the isolated CPUs have a cgroup (v2), the run gets a separate cgroup in it."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator

from quiet import cpulist
from quiet.cpulist import CpuSet
from quiet.errors import Refused
from quiet.host.host import Host
from quiet.host.proc import cpuset_mount, status_field
from quiet.machine.affinity import join
from quiet.targets.cgroup import group, groups_below

_PATIENCE_S = 10  # time limit for killed processes to end
_POLL_S = 0.01
_ROUNDS = 5  # attempts to move processes, which may fork


class RunGroup:
    """Manages the processes of one run: moves the command to the isolated CPUs, and later ends the remaining processes
    or moves them back.
    """

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self._version, self._mount = cpuset_mount(host)
        self._name, self._pid, self._pidfd = name, 0, -1
        self._mask: CpuSet = frozenset()
        self._origin = ""

    @property
    def path(self) -> str:
        """The directory of the cgroup; "" if the run has no separate cgroup."""
        whole = f"{self._mount}{group(self._host)}"
        return f"{whole}/{self._name}" if self._version == 2 and self._host.exists(whole) else ""

    def remember(self, pid: int) -> None:
        """Record the CPUs and cgroup of a process before the profile is applied, so that release() can restore them."""
        with contextlib.suppress(OSError):
            self._mask = frozenset(os.sched_getaffinity(pid))
        self._origin = self._cgroup(pid)

    def add(self, pid: int, parent: int, uid: int, cpus: CpuSet) -> None:
        """Move a process to the isolated CPUs.

        The process must be a child of `parent` and, unless `uid` is 0, belong to that user. Raises Refused if that
        is not so, or if the process cannot be moved.
        """
        try:
            self._pidfd = os.pidfd_open(pid)
        except (OSError, OverflowError):
            raise Refused("the command's process ended before it could be moved") from None
        try:
            path = self.path
            if path:
                with contextlib.suppress(FileExistsError):
                    self._host.mkdir(path)
                self._inherit_pressure(path)
            self._check(pid, parent, uid)
            origin = self._cgroup(pid)
            if self._has_ended():
                raise ProcessLookupError  # the PID may have been reused before the check
            self._pid, self._origin = pid, origin
            if path:
                self._move(pid, self._pidfd, path)
                self._pin(pid, pid, self._pidfd, cpus)
            else:
                before = os.sched_getaffinity(pid)
                join(cpus, pid)
                if self._has_ended():  # the PID may have been reused before the move
                    os.sched_setaffinity(pid, before)
                    raise ProcessLookupError
        except ProcessLookupError:
            self.release()
        except OSError as error:
            raise Refused(f"the command cannot be moved to CPUs {cpulist.format(cpus)}: {error.strerror}") from None

    def _has_ended(self) -> bool:
        """Whether the command has ended; if so, another process may have its PID."""
        return _has_ended(self._pidfd)

    def _inherit_pressure(self, path: str) -> None:
        """Disable a group's pressure accounting if the partition's is disabled (the knob accounting.pressure)."""
        if self._host.text(f"{path.rpartition('/')[0]}/cgroup.pressure") == "0":
            with contextlib.suppress(OSError):
                self._host.write(f"{path}/cgroup.pressure", "0")

    def kill(self) -> None:
        """End every process of the run, and wait up to _PATIENCE_S for them to end."""
        end = time.monotonic() + _PATIENCE_S
        path = self.path
        while time.monotonic() < end:
            pids = self._members(path)
            if not pids:
                return
            try:
                self._host.write(f"{path}/cgroup.kill" if path else "", "1")
            except OSError:  # before Linux 5.14, or no cgroup
                for pid in pids:
                    with contextlib.suppress(OSError), _process(pid) as pidfd:
                        if self._belongs(pid, path):
                            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            time.sleep(_POLL_S)

    def release(self) -> None:
        """Return remaining processes to the command's original cgroup and CPUs, and remove the run's cgroup.

        Processes that cannot return, because their cgroup no longer exists or because they fork faster than they are
        moved, are ended: the restore would move them out of their user's limits. If the run has no separate cgroup,
        this does nothing.
        """
        path = self.path
        if not path or not self._host.exists(path):
            return
        for _ in range(_ROUNDS):
            for pid in self._members(path):
                with contextlib.suppress(OSError), _process(pid) as pidfd:
                    self._return(pid, pidfd, path)
        self.kill()
        self._remove()

    def _return(self, pid: int, pidfd: int, path: str) -> None:
        """Return one process of the run, and its threads, to the command's original cgroup and CPUs."""
        if not self._belongs(pid, path):
            return  # the process has ended, and another process has its PID
        try:
            self._move(pid, pidfd, self._origin or self._mount)
        except ProcessLookupError:
            return
        except OSError:
            pass  # kill() ends it
        for thread in self._host.numbered(f"/proc/{pid}/task"):
            self._pin(pid, thread, pidfd, self._mask)

    def _pin(self, pid: int, thread: int, pidfd: int, cpus: CpuSet) -> None:
        """Restrict a thread of a process to CPUs; undo this if the thread has ended: another one may have its ID."""
        with contextlib.suppress(OSError):
            before = os.sched_getaffinity(thread)
            os.sched_setaffinity(thread, cpus)
            if _has_ended(pidfd) or (thread != pid and not self._host.exists(f"/proc/{pid}/task/{thread}")):
                os.sched_setaffinity(thread, before)

    def _move(self, pid: int, pidfd: int, path: str) -> None:
        """Move a process to a cgroup. Raises OSError; ProcessLookupError if the process has ended.

        Only a PID can be moved. If the process ends before the write, the PID may belong to a new process, which then
        returns to its parent's cgroup, where every process starts. An orphan of another user than root stays: the
        cgroup of its parent, PID 1, has no limits.
        """
        self._write(f"{path}/cgroup.procs", pid)
        if not _has_ended(pidfd):
            return  # until now, the PID belonged to the process
        status = self._host.text(f"/proc/{pid}/status")
        parent = int(status_field(status, "PPid") or 0)
        is_root = (status_field(status, "Uid") or "").split() == ["0"] * 4
        origin = self._cgroup(parent) if parent > 1 or is_root else ""
        if origin and self._cgroup(pid) == path:
            with contextlib.suppress(OSError):
                self._write(f"{origin}/cgroup.procs", pid)
        raise ProcessLookupError

    def _belongs(self, pid: int, path: str) -> bool:
        """Whether the process that has a PID now belongs to the run."""
        if not path:
            return pid in self._descendants()
        return f"{self._cgroup(pid)}/".startswith(f"{path}/")

    def remove(self) -> None:
        """Remove the cgroup after kill()."""
        path = self.path
        if path and self._host.exists(path):
            self._remove()

    def _remove(self) -> None:
        for _ in range(100):  # an exiting task may still be in the cgroup
            try:
                for each in reversed(list(groups_below(self._host, self.path))):
                    self._host.rmdir(each)
            except FileNotFoundError:
                return
            except OSError:
                time.sleep(_POLL_S)
            else:
                return

    def _check(self, pid: int, parent: int, uid: int) -> None:
        status = self._host.text(f"/proc/{pid}/status")
        if status_field(status, "PPid") != str(parent):
            raise Refused(f"process {pid} is not the command of this run")
        if uid and (status_field(status, "Uid") or "").split() != [str(uid)] * 4:
            raise Refused(f"process {pid} belongs to another user")

    def _members(self, path: str) -> list[int]:
        if not path:
            return self._descendants() if self._pid else []
        folders = groups_below(self._host, path)
        return [int(pid) for each in folders for pid in (self._host.text(f"{each}/cgroup.procs") or "").split()]

    def _descendants(self) -> list[int]:
        """The command and its descendants, found through living parents; for hosts without a separate cgroup."""
        parents = {}
        for pid in self._host.numbered("/proc"):
            status = self._host.text(f"/proc/{pid}/status")
            if status_field(status, "State") not in (None, "Z (zombie)"):
                parents[pid] = int(status_field(status, "PPid") or 0)
        found = [self._pid] if self._pid in parents and not self._has_ended() else []
        for pid in found:
            found += [child for child, parent in parents.items() if parent == pid]
        return found

    def _cgroup(self, pid: int) -> str:
        """The directory of a process's cgroup in the hierarchy of the partition; "" unless the hierarchy is cgroup
        v2.
        """
        lines = (self._host.text(f"/proc/{pid}/cgroup") or "").splitlines()
        name = next((line[3:] for line in lines if line.startswith("0::")), "")
        return f"{self._mount}{name.rstrip('/')}" if name and self._version == 2 else ""

    def _write(self, path: str, pid: int) -> None:
        self._host.write(path, str(pid))


@contextlib.contextmanager
def _process(pid: int) -> Iterator[int]:
    """A descriptor of the process (pidfd_open(2)). Raises OSError if there is none."""
    pidfd = os.pidfd_open(pid)
    try:
        yield pidfd
    finally:
        os.close(pidfd)


def _has_ended(pidfd: int) -> bool:
    poll = select.poll()  # select(2) is limited to descriptors below 1024
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
