"""The built-in workloads: one small file a family.

Each has a computation of its result that shares nothing with the C. The C file of the same name exports its descriptor.
"""

from __future__ import annotations

from cbench.model import Parameter, Workload
from cbench.workloads import branches, caches, floats, kernel, nothing, screening, stream, thesis
from cbench.workloads.settings import check_settings, expected_output, parameters, parse_settings
from quiet.errors import UsageError

__all__ = [
    "USER_PARAMETERS",
    "WORKLOADS",
    "check_settings",
    "expected_output",
    "find",
    "parameters",
    "parse_settings",
]

WORKLOADS: tuple[Workload, ...] = (
    *thesis.WORKLOADS,
    *nothing.WORKLOADS,
    *caches.WORKLOADS,
    *stream.WORKLOADS,
    *floats.WORKLOADS,
    *branches.WORKLOADS,
    *kernel.WORKLOADS,
    *screening.WORKLOADS,
)

USER_PARAMETERS = (Parameter("n", 1, 1, "passed to the function as it is", 0, 2**63 - 1),)


def find(name: str) -> Workload:
    """The built-in workload of this name, else UsageError naming all of them."""
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    known = ", ".join(workload.name for workload in WORKLOADS)
    raise UsageError(f"unknown workload {name!r}: use {known}, FILE.c:FUNCTION or LIB.so:FUNCTION")
