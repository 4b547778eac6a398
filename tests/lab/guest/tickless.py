"""Runs in a guest that was booted as the profiles require: the partition, and the knobs that need a new kernel.

`python -m tests.lab.guest.tickless` writes $LAB_OUT/report.json for the tests outside to judge.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path

from tests.lab.guest.drive import Report, quiet, trip

MM = Path("/sys/kernel/mm/transparent_hugepage")
SERVER = "/sys/kernel/debug/sched/fair_server/cpu{}/runtime"
PROFILE = """
[knobs]
cpuset = "quiet"
"sched.servers" = "quiet"
"accounting.pressure" = "quiet"
thp = "quiet"
"thp.shmem" = "never"
"""
MINE = Path("/run/mine.toml")
LOOK = "cat /sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)/cgroup.pressure"
SHOWN = (
    *(SERVER.format(cpu) for cpu in range(4)),
    f"{MM}/hugepages-64kB/enabled",
    f"{MM}/shmem_enabled",
    "/sys/fs/cgroup/quiet/cgroup.pressure",
    "/sys/fs/cgroup/quiet/cpuset.cpus.partition",
    "/sys/devices/system/cpu/nohz_full",
)


def shown() -> dict[str, str]:
    """The checked files, if they exist."""
    return {path: Path(path).read_text().strip() for path in SHOWN if Path(path).exists()}


def main() -> int:
    report: Report = {}
    MINE.write_text(PROFILE)
    try:
        for path, text in ((MM / "hugepages-64kB/enabled", "always"), (MM / "shmem_enabled", "advise")):
            path.write_text(text)
        report["found"] = shown()
        for profile in ("as-is", "strict", str(MINE)):
            report[profile] = trip(profile)
        report["apply"] = quiet("apply", "--all", "--profile", str(MINE))
        report["applied"] = shown()
        report["run"] = quiet("run", "--profile", str(MINE), "--", "sh", "-c", LOOK)
        report["restore"] = quiet("restore")
        report["restored"] = shown()
    except Exception:  # the steps until then are worth having
        report["broke"] = traceback.format_exc()
    Path(os.environ["LAB_OUT"], "report.json").write_text(json.dumps(report, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
