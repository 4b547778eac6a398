"""Define the workload `branch`, which stresses the branch predictor with one of several patterns.

The random pattern is the top bit of G. Marsaglia's xorshift64 (Journal of Statistical Software 8, 2003).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from cbench.model import Parameter, Params, Workload

TAKEN, ALTERNATING, PERIODIC, RANDOM = range(4)
SEED = 88172645463325252
MASK = 2**64 - 1


def outcomes(pattern: int, period: int) -> Iterator[bool]:
    """Yield for each branch whether it is taken, without end."""
    x, index = SEED, 0
    while True:
        if pattern == RANDOM:
            x ^= x << 13 & MASK
            x ^= x >> 7
            x ^= x << 17 & MASK
            yield x >> 63 == 1
        else:
            yield pattern == TAKEN or index % (2 if pattern == ALTERNATING else period) == 0
        index += 1


def branch_expected(params: Params) -> int:
    """The expected value of x, which begins with 0 and becomes x + 3 or x xor 5 at each of n branches."""
    x = 0
    for taken in islice(outcomes(params["pattern"], params["period"]), params["n"]):
        x = x + 3 if taken else x ^ 5
    return x % 2**64


WORKLOADS = (
    Workload(
        name="branch",
        function="branch",
        stresses="the branch predictor: the same code with outcomes that are easy or impossible to predict",
        cost="1 to 2 cycles per predicted branch; 10 on average when outcomes are random (Zen 3)",
        parameters=(
            Parameter("n", 50_000, 10_000, "branches", 1, 2**30),
            Parameter(
                "pattern", RANDOM, RANDOM, "0 always taken, 1 alternating, 2 every period-th, 3 random", 0, RANDOM
            ),
            Parameter("period", 8, 8, "period of pattern 2"),
        ),
        expected=branch_expected,
        check_limit=2_000_000,
    ),
)
