"""The newer workloads in C, compared with independent computations."""

from __future__ import annotations

import ctypes
import math
import resource
import time
from itertools import islice, takewhile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench._cbench import ffi
from cbench.workloads import caches, floats, registry, screening
from cbench.workloads.loader import Loaded, builtin
from quiet.errors import UsageError
from tests.cbench.running import measured, queued

THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
STREAM = ["copy", "scale", "add", "triad"]


def run(name: str, **params: int) -> int:
    with builtin(name, params) as loaded:
        return int(loaded.run(loaded.state, params["n"]))


def agrees(name: str, **params: int) -> bool:
    return run(name, **params) == registry.expected_output(registry.find(name), params)


@pytest.mark.parametrize("workload", [w for w in registry.WORKLOADS if w.trials is None], ids=lambda w: w.name)
def test_the_result_with_the_defaults_is_right_twice(workload: registry.Workload) -> None:
    params = registry.parameters(workload, {}, quick=False)
    expected = registry.expected_output(workload, params)
    with builtin(workload.function, params) as loaded:
        assert [loaded.run(loaded.state, params["n"]) for _ in range(2)] == [expected, expected]


@given(st.integers(1, 5000), st.integers(1, 600), st.integers(2, 40), st.integers(0, 1))
@settings(max_examples=40, deadline=None)
def test_chase_follows_the_cycle_through_any_buffer(n: int, count: int, words: int, pages: int) -> None:
    stride = 8 * words
    assert agrees("chase", n=n, size=count * stride + stride // 2, stride=stride, pages=pages)


@pytest.mark.parametrize("count", [1, 2, 3, 64, 1000])
def test_the_chase_is_a_single_cycle_through_every_link(count: int) -> None:
    params = {"size": 64 * count, "stride": 64, "pages": 0}
    assert {run("chase", n=n, **params) for n in range(1, count + 1)} == set(range(count))
    assert run("chase", n=count, **params) == 0


def test_the_first_numbers_of_the_generator_are_the_published_ones() -> None:
    # SplitMix64 from 1234567, as listed with the implementations of many languages on rosettacode.org
    assert list(islice(caches.splitmix(1234567), 3)) == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def test_a_chase_too_large_to_be_drawn_again_is_not_checked() -> None:
    params = {"n": 1, "size": 64 * (caches.MOST_LINKS + 1), "stride": 64, "pages": 1}
    assert registry.expected_output(registry.find("chase"), params) is None


@pytest.mark.parametrize("pages", [0, 1])
def test_the_chase_has_the_pages_that_were_requested(pages: int) -> None:
    (result,) = measured("chase", params=[f"pages={pages}"])["results"]
    available = THP.exists() and "[never]" not in THP.read_text()
    assert result["pages"] == ("huge" if pages and available else "small")


@given(st.sampled_from(STREAM), st.integers(1, 3), st.integers(64, 5000))
@settings(max_examples=60, deadline=None)
def test_stream_computes_the_formula_in_arrays_of_any_size(name: str, n: int, count: int) -> None:
    assert agrees(name, n=n, size=8 * count)


def test_the_weights_of_stream_are_those_worked_by_hand() -> None:
    # 64 elements, all of them probed: a = 1..64, b = 2..65; the sums of k a and of k b are 89,440 and 91,520
    shares = {"copy": 89_440, "scale": 3 * 89_440, "add": 89_440 + 91_520, "triad": 89_440 + 3 * 91_520}
    assert {name: run(name, n=1, size=512) for name in STREAM} == shares


@pytest.mark.parametrize("name", ["float", "vector"])
@pytest.mark.parametrize("n", [1, 2, 3, 1000, 30_000])
def test_floating_point_is_the_same_to_the_last_bit(name: str, n: int) -> None:
    assert agrees(name, n=n)


def test_the_first_float_round_is_the_one_worked_by_hand() -> None:
    # s = 1/2, u = 1/4, x = 3.9 / 4 / (5/4)^2 = 0.624
    got = run("float", n=1)
    assert abs(got - floats.bits(math.sqrt(0.624 / 0.376))) <= 4


@given(st.integers(1, 3000), st.integers(0, 3), st.integers(1, 100))
@settings(max_examples=60, deadline=None)
def test_branch_goes_the_ways_of_its_pattern(n: int, pattern: int, period: int) -> None:
    assert agrees("branch", n=n, pattern=pattern, period=period)


def test_the_branch_patterns_are_those_worked_by_hand() -> None:
    assert run("branch", n=7, pattern=0, period=1) == 21
    # 3; 3 ^ 5 = 6; 9; 9 ^ 5 = 12
    assert run("branch", n=4, pattern=1, period=1) == 12
    # 3; 6; 6 ^ 5 = 3; 6
    assert run("branch", n=4, pattern=2, period=3) == 6


def test_every_system_call_has_the_same_answer() -> None:
    assert run("syscall", n=1) == 1
    assert agrees("syscall", n=3000)


def faults(loaded: Loaded, n: int) -> tuple[int, int]:
    """The result, and how many page faults the kernel counted."""
    before = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt
    result = loaded.run(loaded.state, n)
    return int(result), resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before


def test_a_trial_of_fault_has_just_its_own_page_faults() -> None:
    own = registry.find("fault").own_faults
    assert own is not None
    for n in (1, 10, 700):
        with builtin("fault", {"n": n}) as loaded:
            seen = [faults(loaded, n) for _ in range(5)]
        assert {result for result, _ in seen} == {n * (n + 1) // 2}
        assert min(count for _, count in seen) == n == own({"n": n})


def test_locked_memory_still_faults_from_the_second_trial_on() -> None:
    with builtin("fault", {"n": 8}) as loaded:
        buffer = ffi.cast("cb_buffer *", loaded.state)
        assert buffer.len == 8 * resource.getpagesize()
        start = ctypes.c_void_p(int(ffi.cast("uintptr_t", buffer.start)))
        assert ctypes.CDLL(None).mlock(start, ctypes.c_size_t(buffer.len)) == 0
        first, *others = [faults(loaded, 8) for _ in range(4)]
    assert first[0] == 36
    assert {result for result, _ in others} == {36}
    assert min(count for _, count in others) == 8


def test_the_sequence_is_the_one_of_the_technical_note() -> None:
    terms = list(screening.aliquot(10_000_000))
    assert len(terms) == 154
    assert terms[1:5] == [14_902_280, 18_750_520, 25_961_480, 34_993_720]
    assert terms[-4:] == [265, 59, 1, 0]
    assert max(terms) == 32_812_701_817_256


@given(st.integers(1, 200), st.integers(1, 10**9))
@settings(max_examples=60, deadline=None)
def test_aliquot_by_trial_division_agrees_from_any_start(n: int, start: int) -> None:
    assert agrees("aliquot", n=n, start=start)


@pytest.mark.parametrize(
    "start", [1, 2, 6, 28, 220, 12496, 276, 2**30 * (2**20 - 1) // 2**20, 10**15, 999_999_999_999_989]
)
def test_aliquot_and_its_check_agree_on_ends_cycles_and_overflow(start: int) -> None:
    assert agrees("aliquot", n=300, start=start)


@given(st.integers(1, 4000))
@settings(max_examples=60, deadline=None)
def test_the_computed_sum_of_divisors_is_correct(number: int) -> None:
    assert screening.proper_divisors(number) == sum(d for d in range(1, number) if number % d == 0)


def test_the_primes_are_those_of_eratosthenes() -> None:
    primes = [n for n in range(2, 2000) if all(n % d for d in takewhile(lambda d, n=n: d * d <= n, range(2, n)))]
    assert [n for n in range(2000) if screening.is_prime(n)] == primes


@pytest.mark.slow
def test_the_etalon_lasts_as_long_by_another_clock() -> None:
    elapsed, own = [], []
    for _ in range(3):
        begin, others = time.monotonic(), queued()
        assert run("etalon", n=200) == 200
        elapsed.append(time.monotonic() - begin)
        own.append(elapsed[-1] - (queued() - others))
    assert min(elapsed) > 0.1995
    assert min(own) < 0.25


@pytest.mark.parametrize("exponent", screening.PERFECT[:-1])
def test_the_divisors_of_a_perfect_number_add_up_to_it(exponent: int) -> None:
    params = {"n": 2**31, "exponent": exponent, "first": 1, "step": 1}
    assert screening.perfect_expected(params) == screening.perfect_number(exponent)
    assert agrees("perfect", **params)


@given(st.sampled_from(screening.PERFECT[:-1]), st.integers(1, 12), st.integers(1, 10**6))
@settings(max_examples=40, deadline=None)
def test_shares_of_the_divisors_agree_and_add_up(exponent: int, shares: int, n: int) -> None:
    each = [{"n": n, "exponent": exponent, "first": first, "step": shares} for first in range(1, shares + 1)]
    assert all(agrees("perfect", **params) for params in each)
    whole = sum(screening.perfect_expected({**params, "n": 2**31}) for params in each)
    assert whole == screening.perfect_number(exponent)


def test_the_perfect_number_is_the_one_of_the_technical_note() -> None:
    assert screening.perfect_number(31) == 2_305_843_008_139_952_128
    params = {"n": 2**31, "exponent": 31, "first": 1, "step": 1}
    assert screening.perfect_expected(params) == 2_305_843_008_139_952_128


def test_an_exponent_whose_number_is_not_perfect_is_refused() -> None:
    assert registry.find("perfect").check is not None
    with pytest.raises(UsageError, match=r"perfect: exponent=11: must be one of 2, 3, 5, 7, 13, 17, 19, 31"):
        registry.parameters(registry.find("perfect"), {"exponent": 11}, quick=False)


@pytest.mark.slow
def test_the_perfect_number_of_the_technical_note_is_perfect() -> None:
    assert agrees("perfect", n=2**31, exponent=31, first=1, step=1)
