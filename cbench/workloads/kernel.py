"""Define workloads that enter the kernel: system calls and page faults."""

from __future__ import annotations

from cbench.model import Parameter, Workload

MOST_PAGES = 262_144

WORKLOADS = (
    Workload(
        name="syscall",
        function="syscall",
        stresses="the round trip into the kernel: getppid(2)",
        cost="600 cycles per call (Zen 3, in a VM); less without mitigations, more with page table isolation",
        parameters=(Parameter("n", 10_000, 1_000, "calls"),),
        expected=lambda params: params["n"],  # all calls have the same result
        check_limit=2**40,
        rewarm_share=4,
        enters_kernel=True,
    ),
    Workload(
        name="fault",
        function="fault",
        stresses="page faults: the first write to fresh small pages, which are returned at the end",
        cost="8,300 cycles per page (Zen 3, in a VM); less without a VM",
        parameters=(Parameter("n", 1_000, 100, "pages", 1, MOST_PAGES),),
        expected=lambda params: params["n"] * (params["n"] + 1) // 2,  # page i contains only the number i
        check_limit=MOST_PAGES,
        own_faults=lambda params: params["n"],
        enters_kernel=True,
    ),
)
