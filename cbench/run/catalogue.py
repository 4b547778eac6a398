"""What `cbench list` says: the workloads and this host's counters."""

from __future__ import annotations

import os

from cbench.measure import counters, user_code
from cbench.model import Workload
from cbench.workloads.registry import USER_PARAMETERS, WORKLOADS


def content() -> dict[str, object]:
    """The object of `cbench list --json`; the counters as seen on the CPU that runs this."""
    cpu = min(os.sched_getaffinity(0))
    user = Workload(
        "FILE.c:FUNCTION",
        "",
        f"your own: {user_code.PROTOTYPE}; also called once before each trial, that value thrown away",
        USER_PARAMETERS,
    )
    return {
        "workloads": [_workload(workload) for workload in (*WORKLOADS, user)],
        "counters": [
            {"name": c.name, "unit": c.unit, "available": c.available, "why": c.why, "method": c.method}
            for c in counters.survey(cpu)
        ],
    }


def _workload(workload: Workload) -> dict[str, object]:
    return {
        "name": workload.name,
        "stresses": workload.stresses,
        "cost": workload.cost,
        "params": {p.name: {"default": p.default, "quick": p.quick, "meaning": p.meaning} for p in workload.parameters},
    }
