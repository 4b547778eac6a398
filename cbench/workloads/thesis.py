"""Define the thesis's three workloads, each with a result computed independently of the C code, and `empty`.

Source: D. Kozak, "Chasing Zero Variability in Software Performance", MIT.
"""

from __future__ import annotations

from cbench.model import Parameter, Params, Workload

HASH_MODULUS = 123456
WORD = 2**32


def hash_expected(params: Params) -> int:
    """x after n rounds from x = 0. The orbit closes after at most 123,456 rounds, so larger n need no further
    rounds.
    """
    first_seen: dict[int, int] = {}
    orbit: list[int] = []
    x = 0
    while x not in first_seen:
        first_seen[x] = len(orbit)
        orbit.append(x)
        x = ((x ^ 0x123) + 3 * x) % HASH_MODULUS
    n, tail = params["n"], first_seen[x]
    return orbit[n] if n < tail else orbit[tail + (n - tail) % (len(orbit) - tail)]


def sieve_expected(params: Params) -> int:
    """The number of primes among 3..n, by the sieve of Eratosthenes."""
    n = params["n"]
    prime = bytearray([1]) * (n + 1)
    prime[0:2] = bytes(min(2, n + 1))
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = bytes(len(range(i * i, n + 1, i)))
    return sum(prime[3:])


def memory_expected(params: Params) -> int:
    """The last state of the generator, with the words of the buffer computed instead of stored."""
    words = params["size"] // 4
    x = value = 0
    for _ in range(params["n"]):
        x = (x * 1103515245 + 12345 + value) % WORD
        value = (x * words >> 32) * 2654435761 % WORD
    return x ^ value


WORKLOADS = (
    Workload(
        name="hash",
        function="hash",
        stresses="the integer pipeline: one dependency chain, no memory access",
        cost="8 to 12 cycles per round",
        parameters=(Parameter("n", 1_000_000, 100_000, "rounds"),),
        expected=hash_expected,
        check_limit=2**40,
        rewarm_share=16,
    ),
    Workload(
        name="sieve",
        function="sieve",
        stresses="the divider and the branch predictor: trial division, no memory access",
        cost="6 to 26 cycles per division, and one misprediction for most numbers",
        parameters=(Parameter("n", 60_000, 10_000, "largest number tried", 3, 2**32 - 1),),
        expected=sieve_expected,
        check_limit=10_000_000,
        rewarm_share=4,
    ),
    Workload(
        name="memory",
        function="memory",
        stresses="the cache level that holds the buffer, and the TLB: dependent random reads",
        cost="the load latency of that cache level plus about 6 cycles per read",
        parameters=(
            Parameter("n", 200_000, 20_000, "reads"),
            Parameter("size", 512 * 1024, 256 * 1024, "buffer in bytes", 4, 2**34),
            Parameter("pages", 1, 1, "1: huge pages, 0: small", 0, 1),
            Parameter("offset", 0, 0, "bytes from the beginning of a page to the buffer", 0, 4096, 64),
        ),
        expected=memory_expected,
        check_limit=1_000_000,
    ),
    Workload(
        name="empty",
        function="empty",
        stresses="the measurement itself: the cost of a trial that executes no work",
        cost="at most 60 ticks or cycles",
        parameters=(Parameter("n", 1, 1, "returned unchanged"),),
        expected=lambda params: params["n"],
        check_limit=2**40,
    ),
)
