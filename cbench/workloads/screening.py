"""Define the workloads of D. Flater, "Screening for Factors Affecting Application Performance in Profiling
Measurements".

NIST Technical Note 1855 (2014), section 3.2: the aliquot sequence from 10^7, the check that a number is perfect, and
the clock etalon of ten seconds. programs.py provides all five workloads of the Note as commands.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from cbench.model import Parameter, Params, Workload

PERFECT = (2, 3, 5, 7, 13, 17, 19, 31)
"""The exponents p below 33 for which 2^p - 1 is prime, so that 2^(p-1) (2^p - 1) is perfect."""
LARGEST = 10**15
"""The limit of the terms of the aliquot sequence; a larger term ends the sequence."""
WITNESSES = (2, 3, 5, 7, 11, 13, 17, 19, 23)
"""The witnesses of the primality test, which is exact below 3.8 * 10^18 with these (Y. Jiang, Y. Deng, Mathematics of
Computation 83, 2014).
"""


def is_prime(number: int) -> bool:
    """Whether a number is prime, by Miller and Rabin's test with WITNESSES."""
    if number < 2:
        return False
    for p in WITNESSES:
        if number % p == 0:
            return number == p
    odd, twos = number - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for witness in WITNESSES:
        x = pow(witness, odd, number)
        if x in (1, number - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % number
            if x == number - 1:
                break
        else:
            return False
    return True


def factor(number: int) -> int:
    """A factor of a composite number, by Pollard's rho."""
    if number % 2 == 0:
        return 2
    for step in range(1, number):
        slow = fast = 2
        divisor = 1
        while divisor == 1:
            slow = (slow * slow + step) % number
            fast = (fast * fast + step) % number
            fast = (fast * fast + step) % number
            divisor = math.gcd(slow - fast, number)
        if divisor != number:
            return divisor
    raise AssertionError(f"{number} is prime")


def primes(number: int) -> Iterator[int]:
    """The prime factors of a number, with repetition."""
    if is_prime(number):
        yield number
    elif number > 1:
        divisor = factor(number)
        yield from primes(divisor)
        yield from primes(number // divisor)


def proper_divisors(number: int) -> int:
    """The sum of a number's proper divisors, from the product of 1 + p + ... + p^k over its prime powers p^k."""
    result = 1
    for p, k in Counter(primes(number)).items():
        result *= sum(p**power for power in range(k + 1))
    return result - number


def aliquot(start: int) -> Iterator[int]:
    """The terms of the aliquot sequence from `start` to 0, or to the first term above LARGEST; endless if they
    cycle.
    """
    while 0 < start <= LARGEST:
        yield start
        start = proper_divisors(start)
    yield start


def aliquot_expected(params: Params) -> int:
    """The expected hash of the first n terms (fewer if the sequence ends): the sum modulo 2^64 of each term times 31^k,
    where k is the number of terms after it.
    """
    result = 0
    for _, term in zip(range(params["n"]), aliquot(params["start"]), strict=False):
        result = (31 * result + term) % 2**64
    return result


def perfect_number(exponent: int) -> int:
    """The perfect number 2^(p-1) (2^p - 1) for the exponent p."""
    return int(2 ** (exponent - 1) * (2**exponent - 1))


def perfect_expected(params: Params) -> int:
    """The expected sum of the tested divisors and their counterparts, which all have the form 2^i or 2^i (2^p - 1)."""
    p, first, step = params["exponent"], params["first"], params["step"]
    number = perfect_number(p)
    divisors = [2**i * factor for i in range(p) for factor in (1, 2**p - 1)]
    last = first + (params["n"] - 1) * step
    tried = [d for d in divisors if d * d <= number and first <= d <= last and (d - first) % step == 0]
    return sum(sum({d, number // d} - {number}) for d in tried) % 2**64


def perfect_check(params: Params) -> str:
    if params["exponent"] in PERFECT:
        return ""
    return f"exponent={params['exponent']}: must be one of {', '.join(map(str, PERFECT))}, which give perfect numbers"


WORKLOADS = (
    Workload(
        name="aliquot",
        function="aliquot",
        stresses="the 64-bit divider: the aliquot sequence of NIST TN 1855, divisors by trial division",
        cost="11 cycles per division (Zen 3), 3.2 million of them from 10,000,000",
        parameters=(
            Parameter("n", 154, 40, "maximum number of terms; from 10,000,000 there are 154", 1, 10_000),
            Parameter("start", 10_000_000, 10_000_000, "first term", 1, LARGEST),
        ),
        expected=aliquot_expected,
        check_limit=1_000,
        rewarm_share=16,
    ),
    Workload(
        name="etalon",
        function="etalon",
        stresses="the clock: reads it until a time has passed, to check the counter against a known duration",
        cost="n milliseconds at any frequency; 10 trials without a warm-up unless requested otherwise",
        parameters=(Parameter("n", 10_000, 200, "milliseconds", 1, 1_000_000),),
        expected=lambda params: params["n"],  # ends at the first reading after the deadline
        check_limit=2**40,
        rewarm_share=1_000,
        enters_kernel=None,  # it enters the kernel if the clock cannot be read in user space
        trials=10,
    ),
    Workload(
        name="perfect",
        function="perfect",
        stresses="the 64-bit divider: all divisors of a perfect number of NIST TN 1855, by trial division",
        cost="11 cycles per division (Zen 3), 1,518 million of them for the exponent 31; 10 trials without a warm-up",
        parameters=(
            Parameter("n", 2**31, 2**31, "maximum number of candidates", 1, 2**32),
            Parameter("exponent", 31, 19, "p of 2^(p-1) (2^p - 1)", 2, 31),
            Parameter("first", 1, 1, "first candidate", 1, 2**31),
            Parameter("step", 1, 1, "from one candidate to the next", 1, 2**31),
        ),
        expected=perfect_expected,
        check_limit=2**40,
        rewarm_share=2**20,
        check=perfect_check,
        trials=10,
    ),
)
