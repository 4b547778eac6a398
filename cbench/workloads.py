"""The three workloads of the thesis, each with a computation of its result that shares nothing with the C.

Source: D. Kozak, "Chasing Zero Variability in Software Performance", MIT.
"""

from __future__ import annotations

from collections.abc import Iterable

from cbench.model import Parameter, Params, Workload
from quiet.errors import UsageError

HASH_MODULUS = 123456
WORD = 2**32


def hash_expected(params: Params) -> int:
    """x after n rounds, by finding where the orbit of x = 0 closes: at most 123,456 rounds for any n."""
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
    """Primes among 3..n by the sieve of Eratosthenes."""
    n = params["n"]
    prime = bytearray([1]) * (n + 1)
    prime[0:2] = bytes(min(2, n + 1))
    for i in range(2, int(n**0.5) + 1):
        if prime[i]:
            prime[i * i :: i] = bytes(len(range(i * i, n + 1, i)))
    return sum(prime[3:])


def memory_expected(params: Params) -> int:
    """The generator's last state, the buffer's words computed instead of stored."""
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
        parameters=(Parameter("n", 1_000_000, 100_000, "rounds"),),
        expected=hash_expected,
        check_limit=2**40,
        rewarm_share=16,
    ),
    Workload(
        name="sieve",
        function="sieve",
        stresses="the divider and the branch predictor: trial division, no memory access",
        parameters=(Parameter("n", 60_000, 10_000, "largest number tried", 3, 2**32 - 1),),
        expected=sieve_expected,
        check_limit=10_000_000,
        rewarm_share=4,
    ),
    Workload(
        name="memory",
        function="memory",
        stresses="the cache level that holds the buffer, and the TLB: dependent random reads",
        parameters=(
            Parameter("n", 200_000, 20_000, "reads"),
            Parameter("size", 512 * 1024, 256 * 1024, "buffer in bytes", 4, 2**34),
        ),
        expected=memory_expected,
        check_limit=1_000_000,
    ),
)

USER_PARAMETERS = (Parameter("n", 1, 1, "passed to the function as it is", 0, 2**63 - 1),)


def find(name: str) -> Workload:
    """The built-in workload of this name, else UsageError naming all of them."""
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    known = ", ".join(workload.name for workload in WORKLOADS)
    raise UsageError(f"unknown workload {name!r}: use {known}, FILE.c:FUNCTION or LIB.so:FUNCTION")


def parse_settings(texts: Iterable[str]) -> dict[str, int]:
    """`["n=1000"]` as numbers, else UsageError."""
    settings: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--param {text!r}: write it as NAME=NUMBER, for example n=1000")
        try:
            settings[name] = int(value.replace("_", ""))
        except ValueError:
            raise UsageError(f"--param {name}: {value!r} is not a whole number") from None
    return settings


def parameters(workload: Workload, settings: Params, quick: bool) -> dict[str, int]:
    """The workload's parameters with the user's settings in place; UsageError for one out of range."""
    chosen = {p.name: p.quick if quick else p.default for p in workload.parameters}
    for parameter in workload.parameters:
        value = settings.get(parameter.name, chosen[parameter.name])
        if not parameter.minimum <= value <= parameter.maximum:
            raise UsageError(
                f"--param {parameter.name}={value}: {workload.name} takes {parameter.name} "
                f"({parameter.meaning}) from {parameter.minimum:,} to {parameter.maximum:,}"
            )
        chosen[parameter.name] = value
    return chosen


def check_settings(workloads: Iterable[Workload], settings: Params) -> None:
    """UsageError for a setting that no chosen workload knows."""
    chosen = tuple(workloads)
    known = sorted({p.name for workload in chosen for p in workload.parameters})
    for name in settings:
        if name not in known:
            takers = ", ".join(workload.name for workload in chosen)
            raise UsageError(f"--param {name}: unknown; {takers}: takes {', '.join(known)}")


def expected_output(workload: Workload, params: Params) -> int | None:
    """What every trial must return, or None where Python cannot tell or would take too long."""
    if workload.expected is None or params["n"] > workload.check_limit:
        return None
    return workload.expected(params)
