"""Define floating-point workloads: a chain of scalar operations, and vectors.

Python's float is IEEE 754 binary64 and rounds every operation separately, including math.sqrt. The C code is compiled
to do the same, so the results are the same to the last bit.
"""

from __future__ import annotations

import math
import struct

from cbench.model import Parameter, Params, Workload

LANES = 16
GROWTH = 3.9


def bits(value: float) -> int:
    """The 64 bits of a double as an integer."""
    return int.from_bytes(struct.pack("<d", value), "little")


def float_expected(params: Params) -> int:
    """The bits of s after n rounds of the scalar chain."""
    s = 0.5
    for _ in range(params["n"]):
        odds = s * s
        x = GROWTH * odds / ((1.0 + odds) * (1.0 + odds))
        s = math.sqrt(x / (1.0 - x))
    return bits(s)


def vector_expected(params: Params) -> int:
    """The expected result of the vector workload, from the bits of all lanes; each lane is computed separately."""
    result = 0
    for lane in range(LANES):
        x = (lane + 1) / 32
        for _ in range(params["n"]):
            x = GROWTH * x * (1.0 - x)
        result = (31 * result + bits(x)) % 2**64
    return result


WORKLOADS = (
    Workload(
        name="float",
        function="float",
        stresses="the latency of scalar floating point: one chain of add, multiply, divide and square root",
        cost="50 to 90 cycles per round (59 on Zen 3)",
        parameters=(Parameter("n", 50_000, 5_000, "rounds"),),
        expected=float_expected,
        check_limit=2_000_000,
        rewarm_share=16,
    ),
    Workload(
        name="vector",
        function="vector",
        stresses="the throughput of the vector unit: eight vectors of two doubles, multiplied and subtracted",
        cost="8 to 12 cycles per round of 24 operations (10 on Zen 3)",
        parameters=(Parameter("n", 50_000, 5_000, "rounds"),),
        expected=vector_expected,
        check_limit=500_000,
        rewarm_share=16,
    ),
)
