"""Find the tasks of a command while it runs: the descendants of a process, or the members of a cgroup.

Source: proc_pid_task(5) (`children`), proc_pid_stat(5), scheduler/sched-stats.rst (/proc/PID/schedstat: nanoseconds on
a CPU, nanoseconds waiting for a CPU, number of times that the task got a CPU).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from quiet.host.proc import stat_fields
from quiet.host.reader import Reader

_CPU = 36  # "processor" in stat_fields()
_TIMES = slice(11, 15)  # utime, stime, cutime, cstime
_ONE_THREAD = 3  # links of /proc/PID/task: ".", its entry in PID, and one per thread (fs/proc/base.c)


class RunTimes(NamedTuple):
    """How long a thread has run and waited so far, in nanoseconds, and how often it got a CPU."""

    run_ns: int = 0
    wait_ns: int = 0
    slices: int = 0


class TaskTimes(NamedTuple):
    """A thread's totals: how long it ran and waited, in ns; how often it got a CPU; and the CPU that it last used."""

    tid: int
    comm: str
    cpu: int
    run_ns: int
    wait_ns: int
    slices: int


def task_times(reader: Reader, tid: int, pid: int | None = None) -> TaskTimes | None:
    """The times of one thread, 0 on kernels without schedstat; None if it has ended.

    `pid`: its process; None for the main thread of a process.
    """
    base = f"/proc/{pid or tid}/task/{tid}"
    times = (reader.text(f"{base}/schedstat") or "").split()
    text = reader.text(f"{base}/stat")
    fields = stat_fields(text)
    if text is None or len(fields) <= _CPU:
        return None
    comm = text.partition("(")[2].rpartition(")")[0]
    run, wait, slices = (int(number) for number in times) if len(times) == 3 else (0, 0, 0)
    return TaskTimes(tid, comm, int(fields[_CPU]), run, wait, slices)


def migrations(reader: Reader, tid: int) -> int | None:
    """The number of migrations of a task (se.nr_migrations); None without CONFIG_SCHED_DEBUG or if it has ended."""
    text = reader.text(f"/proc/{tid}/sched") or ""
    number = text.partition("se.nr_migrations")[2].partition("\n")[0].strip(" :")
    return int(number) if number.isdecimal() else None


def run_times(reader: Reader) -> dict[int, RunTimes]:
    """The run times of every thread on the host whose times this process may read; ran() takes them as `before`."""
    return {tid: times for _, tid, times in _threads(reader)}


def ran(reader: Reader, before: Mapping[int, RunTimes]) -> list[TaskTimes]:
    """The tasks that have got a CPU and run since `before`, with the times since then, longest first."""
    since = []
    for pid, tid, times in _threads(reader):
        then = before.get(tid, RunTimes())
        if times.run_ns > then.run_ns and times.slices > then.slices and (now := task_times(reader, tid, pid)):
            run, wait, slices = (new - old for new, old in zip(times, then, strict=True))
            since.append(now._replace(run_ns=run, wait_ns=wait, slices=slices))
    return sorted(since, key=lambda task: -task.run_ns)


def _threads(reader: Reader) -> Iterator[tuple[int, int, RunTimes]]:
    for pid in reader.numbered("/proc"):
        for tid in _tids(reader, pid):
            numbers = (reader.text(f"/proc/{pid}/task/{tid}/schedstat") or "").split()
            if len(numbers) == 3:
                yield pid, tid, RunTimes(*map(int, numbers))


def _tids(reader: Reader, pid: int) -> list[int]:
    """The threads of a process.

    Most processes have only one, which the link count of the directory shows faster than a listing.
    """
    with contextlib.suppress(OSError):
        if reader.stat(f"/proc/{pid}/task").st_nlink == _ONE_THREAD:
            return [pid]
    return reader.numbered(f"/proc/{pid}/task")


class CommandTasks:
    """The tasks of one command. `tids`: all tasks seen so far; observers add new ones."""

    def __init__(self, reader: Reader, pid: int = 0, cgroup: str = "") -> None:
        """`pid`: the command's first process; `cgroup`: the directory of a cgroup that contains only the command."""
        self._reader, self.pid, self.cgroup = reader, pid, cgroup
        self.tids: set[int] = {pid} if pid else set()
        self._pids: set[int] = {pid} if pid else set()  # processes that still ran at the last check

    def look(self) -> list[TaskTimes]:
        """The current threads, including zombies; they are also added to `tids`."""
        threads = []
        for pid in self._processes():
            for tid in self._reader.numbered(f"/proc/{pid}/task"):
                if times := task_times(self._reader, tid, pid):
                    self.tids.add(tid)
                    threads.append(times)
        return threads

    def cpu_ns(self) -> float | None:
        """The CPU time of all tasks, including ended ones, in nanoseconds; None if unknown.

        For a process, this is the CPU time of the process and of the children that it has waited for, in steps of
        1/USER_HZ s.
        """
        text = self._reader.text(f"{self.cgroup}/cpu.stat") if self.cgroup else None
        rows = dict(line.split(" ", 1) for line in (text or "").splitlines() if " " in line)
        if "usage_usec" in rows:
            return float(rows["usage_usec"]) * 1e3
        fields = stat_fields(self._reader.text(f"/proc/{self.pid}/stat")) if self.pid else []
        return sum(map(int, fields[_TIMES])) * 1e9 / os.sysconf("SC_CLK_TCK") if fields else None

    def _processes(self) -> set[int]:
        if self.cgroup:
            self._pids |= set(self._of_cgroup(self.cgroup))
        found: set[int] = set()
        pending = list(self._pids)
        while pending:
            pid = pending.pop()
            if pid in found:
                continue
            tids = self._reader.numbered(f"/proc/{pid}/task")
            if tids:
                found.add(pid)
            for tid in tids:
                children = self._reader.text(f"/proc/{pid}/task/{tid}/children") or ""
                pending += [int(child) for child in children.split()]
        self._pids = found
        return found

    def _of_cgroup(self, folder: str) -> Iterator[int]:
        text = self._reader.text(f"{folder}/cgroup.procs") or ""
        yield from (int(line) for line in text.split())
        for name in self._reader.names(folder):
            if self._reader.is_folder(f"{folder}/{name}"):
                yield from self._of_cgroup(f"{folder}/{name}")
