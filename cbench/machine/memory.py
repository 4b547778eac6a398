"""Determine the available memory of this host."""

from __future__ import annotations

import re

import psutil

from quiet import Reader


def free_memory(reader: Reader) -> int:
    """The available memory in bytes: the host's free memory, limited by this process's cgroups."""
    free: int = psutil.virtual_memory().available
    for line in (reader.text("/proc/self/cgroup") or "").splitlines():
        if line.startswith("0::"):
            path = line[3:].rstrip("/")
            while path:
                free = min(free, _left(reader, f"/sys/fs/cgroup{path}", free))
                path = path.rpartition("/")[0]
            free = min(free, _left(reader, "/sys/fs/cgroup", free))  # a container's own cgroup
    return free


def _left(reader: Reader, group: str, otherwise: int) -> int:
    most, used = (reader.text(f"{group}/memory.{name}") or "" for name in ("max", "current"))
    if not (most.isdecimal() and used.isdecimal()):
        return otherwise
    stat = reader.text(f"{group}/memory.stat") or ""
    cache = sum(map(int, re.findall(r"^(?:in)?active_file (\d+)$", stat, re.MULTILINE)))  # reclaimable
    return max(int(most) - int(used) + cache, 0)
