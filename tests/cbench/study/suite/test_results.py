"""Which result is whose: by name, or by the longest beginning of the name up to the end of a word."""

from __future__ import annotations

import pytest

from cbench.formats.google_benchmark import GoogleBenchmarkReader
from cbench.study.suite.results import assigned, value


def of(names: list[str], tests: list[str]) -> dict[str, list[str]]:
    samples = [GoogleBenchmarkReader().sample(name, "ns", [[1.0]]) for name in names]
    return {test: list(found) for test, found in assigned(samples, set(tests)).items()}


CASES = [
    (["a", "b"], ["b", "a"], {"b": [""], "a": [""]}),
    (["BenchmarkA", "BenchmarkB"], ["BenchmarkA-2"], {"BenchmarkA": [""]}),
    (["BenchmarkA"], ["BenchmarkA-2", "BenchmarkA-2 B/op"], {"BenchmarkA": ["", "B/op"]}),
    (["B"], ["B/8-2", "B/88-2"], {"B": ["8-2", "88-2"]}),
    (["case"], ["case: fast", "case: full"], {"case": ["fast", "full"]}),
    (["case", "case: x"], ["case: x: loop"], {"case: x": [""]}),
    (["org.B.copy"], ["org.B.copy n=1", "org.B.copy n=2"], {"org.B.copy": ["n=1", "n=2"]}),
    (["test_a"], ["test_ab", "test_a_b", "other"], {}),
]


@pytest.mark.parametrize(("tests", "results", "expected"), CASES, ids=[str(results) for _, results, _ in CASES])
def test_a_result_is_assigned_to_its_test(tests: list[str], results: list[str], expected: object) -> None:
    assert of(results, tests) == expected


def test_the_value_is_the_median_over_all_processes() -> None:
    assert value(GoogleBenchmarkReader().sample("a", "ns", [[1, 2], [9]])) == 2.0
