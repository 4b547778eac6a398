"""A trial that does nothing: what measuring alone costs."""

from __future__ import annotations

from cbench.model import Parameter, Workload

WORKLOADS = (
    Workload(
        name="empty",
        function="empty",
        stresses="nothing: what a trial costs that does nothing",
        cost="at most 60 ticks or cycles",
        parameters=(Parameter("n", 1, 1, "returned as it is"),),
        expected=lambda params: params["n"],
        check_limit=2**40,
    ),
)
