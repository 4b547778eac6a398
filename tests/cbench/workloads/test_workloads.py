"""The C workloads, compared with independent computations."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cbench.model import Params
from cbench.workloads import registry
from cbench.workloads.loader import builtin
from cbench.workloads.thesis import hash_expected, memory_expected, sieve_expected
from quiet.errors import UsageError


def run(name: str, params: Params) -> int:
    with builtin(registry.find(name).function, params) as loaded:
        return int(loaded.run(loaded.state, params["n"]))


def naive_hash(n: int) -> int:
    x = 0
    for _ in range(n):
        x = ((x ^ 0x123) + 3 * x) % 123456
    return x


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 123_456, 1_000_000])
def test_hash_in_c_is_the_hash_computed_by_its_orbit(n: int) -> None:
    assert run("hash", {"n": n}) == hash_expected({"n": n})


@given(st.integers(1, 3000))
@settings(max_examples=40, deadline=None)
def test_hash_is_the_formula_taken_n_times(n: int) -> None:
    assert run("hash", {"n": n}) == naive_hash(n) == hash_expected({"n": n})


def test_the_first_hash_values_are_those_worked_by_hand() -> None:
    # 0 ^ 291 = 291; (291 ^ 291) + 873 = 873; (873 ^ 291) + 2619 = 586 + 2619 = 3205
    assert [run("hash", {"n": n}) for n in (1, 2, 3)] == [291, 873, 3205]


@pytest.mark.parametrize(("n", "primes"), [(3, 1), (4, 1), (5, 2), (9, 3), (100, 24), (10_000, 1228), (60_000, 6056)])
def test_sieve_counts_the_odd_primes(n: int, primes: int) -> None:
    assert run("sieve", {"n": n}) == primes == sieve_expected({"n": n})


@given(st.integers(3, 5000))
@settings(max_examples=40, deadline=None)
def test_sieve_by_division_agrees_with_the_sieve_of_eratosthenes(n: int) -> None:
    assert run("sieve", {"n": n}) == sieve_expected({"n": n})


@given(st.integers(1, 2000), st.integers(4, 1 << 20))
@settings(max_examples=40, deadline=None)
def test_memory_follows_the_generator_through_any_buffer(n: int, size: int) -> None:
    assert run("memory", {"n": n, "size": size}) == memory_expected({"n": n, "size": size})


def test_memory_with_its_defaults_agrees() -> None:
    params = registry.parameters(registry.find("memory"), {}, quick=False)
    assert run("memory", params) == memory_expected(params)


def test_the_first_memory_reads_are_those_worked_by_hand() -> None:
    # x = 12345, word 0 of a four-byte buffer holds 0, so x stays 12345 and the value 0
    assert run("memory", {"n": 1, "size": 4}) == 12345
    # then x = 12345 * 1103515245 + 12345 mod 2^32
    assert run("memory", {"n": 2, "size": 4}) == (12345 * 1103515245 + 12345) % 2**32


def test_memory_refuses_a_buffer_smaller_than_a_word() -> None:
    with pytest.raises(UsageError, match=r"cannot create its state \(n=1 size=3\): Invalid argument"):
        builtin("memory", {"n": 1, "size": 3})


@pytest.mark.parametrize("name", ["hash", "sieve", "memory"])
def test_every_workload_can_be_checked_at_its_defaults(name: str) -> None:
    workload = registry.find(name)
    for quick in (False, True):
        assert registry.expected_output(workload, registry.parameters(workload, {}, quick)) is not None
