"""Runs in the guest: a limit that the kernel keeps only while a process has a device open, and that process."""

from __future__ import annotations

import os
import signal
import struct
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

DEVICE = "/dev/cpu_dma_latency"
LIMIT_US = 5
PROFILE = f"""
[cpus]
isolated = "{(os.cpu_count() or 2) - 1}"
[knobs]
tasks = "quiet"
"idle.latency" = {LIMIT_US}
"idle.cpus" = "none"
"""


def limit() -> int:
    """The kernel's result of all requests, in microseconds."""
    with open(DEVICE, "rb", buffering=0) as device:
        (found,) = struct.unpack("i", device.read(4))
        return int(found)


def holders() -> list[int]:
    pids = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
    return [pid for pid in pids if b"quiet holds " in read(pid, "cmdline")]


def read(pid: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def held(quiet: Callable[..., dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"before": limit()}
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as profile:
        profile.write(PROFILE)
        profile.flush()
        found["apply"] = quiet("apply", "--profile", profile.name)
        found["applied"] = limit()
        first = holders()
        found["holders"] = len(first)
        found["cgroups"] = [read(pid, "cgroup").decode().split() for pid in first]
        found["verify"] = quiet("verify", "--duration", "0")
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.5)
        found["killed"] = limit()
        found["verify_killed"] = quiet("verify", "--duration", "0")
        found["apply_again"] = quiet("apply", "--profile", profile.name)
        found["applied_again"] = limit()
        found["restore"] = quiet("restore")
        found["restored"] = limit()
        found["holders_left"] = len(holders())
    return found
