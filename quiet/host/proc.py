"""Parse files of /proc: mounts, a task's stat and status, meminfo, and the CPUs' ticks.

Sources: proc_pid_mounts(5), proc_pid_stat(5), proc_pid_status(5), proc_meminfo(5), proc_stat(5).
"""

from __future__ import annotations

from typing import NamedTuple

from quiet.host.reader import Reader

# indices in the list that stat_fields() returns, which begins with the third field
STATE, PARENT, FLAGS, NICE, START_TIME, RT_PRIORITY, POLICY = 0, 1, 6, 16, 19, 37, 38
STEAL = 7  # index in a CPU's ticks


class Mount(NamedTuple):
    """A line of /proc/mounts."""

    path: str
    type: str
    options: tuple[str, ...]


def mounts(reader: Reader) -> list[Mount]:
    """The mounts, in the kernel's order: a later mount hides an earlier one on the same path."""
    lines = (line.split(" ") for line in (reader.text("/proc/mounts") or "").splitlines())
    return [Mount(fields[1], fields[2], tuple(fields[3].split(","))) for fields in lines if len(fields) > 3]


def cpuset_mount(reader: Reader) -> tuple[int, str]:
    """The cgroup version and mount point of the hierarchy with the cpuset controller; (0, "") if there is none."""
    v1 = ""
    for mount in mounts(reader):
        if mount.type == "cgroup2" and "cpuset" in (reader.text(mount.path + "/cgroup.controllers") or "").split():
            return 2, mount.path
        if mount.type == "cgroup" and "cpuset" in mount.options:
            v1 = mount.path
    return (1, v1) if v1 else (0, "")


def stat_fields(text: str | None) -> list[str]:
    """The fields of /proc/PID/stat from the third on (the second may contain spaces and parentheses)."""
    return text.rpartition(")")[2].split() if text else []


def start_time(reader: Reader, pid: int | str) -> str | None:
    """The start time of a task, in ticks since boot; None if it has ended.

    It distinguishes the task from a later task with the same PID.
    """
    fields = stat_fields(reader.text(f"/proc/{pid}/stat"))
    return fields[START_TIME] if len(fields) > START_TIME else None


def status_field(text: str | None, name: str) -> str | None:
    """The value of a line of /proc/PID/status; None if the line is missing."""
    start = text.find(f"\n{name}:") if text else -1
    return text[start + len(name) + 2 :].partition("\n")[0].strip() if text and start >= 0 else None


def meminfo(reader: Reader, name: str) -> int:
    """A value of /proc/meminfo in KiB; 0 if the kernel does not report it."""
    for line in (reader.text("/proc/meminfo") or "").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0


def cpu_ticks(text: str) -> dict[str, list[int]]:
    """The ticks of each CPU in /proc/stat, in USER_HZ ("cpu" is the sum of all CPUs, "cpu0" the first CPU)."""
    rows = (line.split() for line in text.splitlines() if line.startswith("cpu"))
    return {row[0]: [int(field) for field in row[1:]] for row in rows if all(field.isdecimal() for field in row[1:])}
