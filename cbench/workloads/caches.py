"""Define workloads for latency and bandwidth of caches and memory: a pointer chase, and the four kernels of STREAM.

Python draws the same cycle as the C code: by SplitMix64 (Steele, Lea, Flood, OOPSLA 2014) and Sattolo's algorithm
(Information Processing Letters 22, 1986), but on a list of indices instead of pointers.

The result of STREAM's kernels (J. McCalpin, IEEE TCCA Newsletter, 1995) is a weighted sum of 64 evenly spaced elements
of the written array, which are whole numbers that doubles represent exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cbench.model import Parameter, Params, Workload

SEED = 1
MOST_LINKS = 2**18
"""The maximum number of links for which Python draws the cycle too, in about 0.3 s."""
MASK = 2**64 - 1


def splitmix(seed: int) -> Iterator[int]:
    """The random numbers of SplitMix64, from 0 to 2**64 - 1, without end."""
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & MASK
        z = seed
        z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ z >> 27) * 0x94D049BB133111EB) & MASK
        yield z ^ z >> 31


def cycle(count: int) -> list[int]:
    """For each of `count` links, the next link; all links form a single cycle."""
    order, random = list(range(count)), splitmix(SEED)
    for i in range(count - 1, 0, -1):
        j = next(random) % i
        order[i], order[j] = order[j], order[i]
    return order


def chase_expected(params: Params) -> int | None:
    """The index of the link after n steps from the first link; None for more than MOST_LINKS links. Whole rounds of the
    cycle are skipped.
    """
    count = params["size"] // params["stride"]
    if count > MOST_LINKS:
        return None
    order, at = cycle(count), 0
    for _ in range(params["n"] % count):
        at = order[at]
    return at


def _wrong(params: Params) -> str:
    size, stride = params["size"], params["stride"]
    return f"size={size:,} has no room for one link every {stride:,} bytes" if size < stride else ""


PROBES = 64
DOUBLE = 8

STREAM_PARAMETERS = (
    Parameter("n", 1, 1, "passes over the arrays"),
    Parameter("size", 16 * 2**20, 2**20, "bytes of each of the three arrays", PROBES * DOUBLE, 2**34, DOUBLE),
)


def probed(params: Params, kernel: Callable[[int, int], int]) -> int:
    """The weighted sum of the probed elements of a result. `kernel` computes an element from the corresponding
    elements of a and b.
    """
    last = params["size"] // DOUBLE - 1
    places = [number * last // (PROBES - 1) for number in range(PROBES)]
    return sum((k + 1) * kernel(1 + i % 1021, 2 + i % 509) for k, i in enumerate(places))


def _stream(name: str, formula: str, arrays: int, kernel: Callable[[int, int], int]) -> Workload:
    moved = arrays * STREAM_PARAMETERS[1].default
    return Workload(
        name=name,
        function=name,
        stresses=f"bandwidth: {formula} in doubles, of the cache level that holds three arrays, or of memory",
        cost=f"{arrays} x size bytes moved per pass ({moved:,} by default), divided by the bandwidth",
        parameters=STREAM_PARAMETERS,
        expected=lambda params: probed(params, kernel),
        check_limit=2**40,
        buffers=3,
    )


WORKLOADS = (
    Workload(
        name="chase",
        function="chase",
        stresses="the load latency of the cache level that holds the buffer (with small pages, the TLB too)",
        cost="the latency of that cache level per load: 4 cycles in L1 and 12 in L2 on Zen 3",
        parameters=(
            Parameter("n", 200_000, 20_000, "loads"),
            Parameter("size", 512 * 1024, 256 * 1024, "buffer in bytes", 16, 2**34),
            Parameter("stride", 64, 64, "bytes from one link to the next", 16, 2**30, 8),
            Parameter("pages", 1, 1, "1: huge pages, 0: small", 0, 1),
        ),
        expected=chase_expected,
        check_limit=2**40,
        check=_wrong,
    ),
    _stream("copy", "c = a", 2, lambda a, _b: a),
    _stream("scale", "c = 3a", 2, lambda a, _b: 3 * a),
    _stream("add", "c = a + b", 3, lambda a, b: a + b),
    _stream("triad", "c = a + 3b", 3, lambda a, b: a + 3 * b),
)
