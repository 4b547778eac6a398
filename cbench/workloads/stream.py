"""STREAM's four kernels (J. McCalpin, IEEE TCCA Newsletter, 1995): memory bandwidth.

The result is a weighted sum of 64 elements of the array written, evenly spread: whole numbers, which doubles hold
exactly.
"""

from __future__ import annotations

from collections.abc import Callable

from cbench.model import Parameter, Params, Workload

PROBES = 64
DOUBLE = 8

PARAMETERS = (
    Parameter("n", 1, 1, "passes over the arrays"),
    Parameter("size", 16 * 2**20, 2**20, "bytes of each of the three arrays", PROBES * DOUBLE, 2**34, DOUBLE),
)


def probed(params: Params, kernel: Callable[[int, int], int]) -> int:
    """What the probes of a result add up to, `kernel` having been given the elements of a and b."""
    last = params["size"] // DOUBLE - 1
    places = [number * last // (PROBES - 1) for number in range(PROBES)]
    return sum((k + 1) * kernel(1 + i % 1021, 2 + i % 509) for k, i in enumerate(places))


def _stream(name: str, formula: str, arrays: int, kernel: Callable[[int, int], int]) -> Workload:
    moved = arrays * PARAMETERS[1].default
    return Workload(
        name=name,
        function=name,
        stresses=f"bandwidth: {formula} in doubles, of the cache level that holds three arrays, or of memory",
        cost=f"{arrays} x size bytes moved a pass ({moved:,} by default) divided by the bandwidth",
        parameters=PARAMETERS,
        expected=lambda params: probed(params, kernel),
        check_limit=2**40,
        buffers=3,
    )


WORKLOADS = (
    _stream("copy", "c = a", 2, lambda a, _b: a),
    _stream("scale", "c = 3a", 2, lambda a, _b: 3 * a),
    _stream("add", "c = a + b", 3, lambda a, b: a + b),
    _stream("triad", "c = a + 3b", 3, lambda a, b: a + 3 * b),
)
