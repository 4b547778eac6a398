"""Every file in data/ is read: by which reader, and as which processes and values."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbench.formats import registry

DATA = Path(__file__).with_name("data")
ROUNDS = [12]
FIXTURES = [
    # file, format, first test, unit, values of each process, first value
    ("asv-0.4.2-samples.json", "asv results", "b.Suite.time_sort(10, 'a')", "second", [10], 1.2910999885207275e-06),
    ("asv-0.5.1-samples.json", "asv results", "b.Suite.time_sort(10, 'a')", "second", [10], 2.1513999854505526e-06),
    ("asv-0.6.6-no-samples.json", "asv results", "b.Suite.time_sort(10, 'a')", "second", [1], 8.257499985120376e-07),
    ("asv-0.6.6-samples.json", "asv results", "b.Suite.time_sort(10, 'a')", "second", [10], 1.3723000392928953e-06),
    ("catch2-2.13.10-no-analysis.xml", "Catch2 XML", "sums: accumulate", "ns", [1], 672.361),
    ("catch2-2.13.10-successes.xml", "Catch2 XML", "sums: accumulate", "ns", [1], 569.274),
    ("catch2-2.13.10.xml", "Catch2 XML", "sums: accumulate", "ns", [1], 666.444),
    ("catch2-3.7.1-no-analysis.xml", "Catch2 XML", "sums: accumulate", "ns", [1], 283.856),
    ("catch2-3.7.1-successes.xml", "Catch2 XML", "sums: accumulate", "ns", [1], 284.998),
    ("catch2-3.7.1.xml", "Catch2 XML", "sums: accumulate", "ns", [1], 285.546),
    ("criterion-0.3.6", "Criterion directory", "flat/sleep", "ns", [10], 2830361.5 / 19),
    ("criterion-arrays", "Criterion directory", "Fibonacci/Iterative", "ns", [100], 1128000.0 / 209454.0),
    ("criterion-copies", "Criterion directory", "sum", "ns", [10, 10], 553253.0 / 369721.0),
    ("go-1.19-count.txt", "Go benchmark text", "BenchmarkSort/n=10-2", "ns", [5], 821.2),
    ("go-1.19-packages.txt", "Go benchmark text", "example.com/sorting.BenchmarkMetric-2", "ns", [3], 432.1),
    ("go-1.19-single.txt", "Go benchmark text", "BenchmarkSort/n=10", "ns", [1], 675.4),
    ("google-1.7.1-aggregates.json", "google/benchmark JSON", "BM_sum/64", "ns", [1], 115.39201198868665),
    ("google-1.7.1-repetitions.json", "google/benchmark JSON", "BM_sum/64", "ns", [5], 84.46502653587834),
    ("google-1.7.1-single-error.json", "google/benchmark JSON", "BM_sum/64", "ns", [1], 95.43991022214142),
    ("google-1.8.3-repetitions.json", "google/benchmark JSON", "sum_range", "ns", [4], 1423.5718119714904),
    ("google-1.9.5-interleaved.json", "google/benchmark JSON", "sum_range", "ns", [4], 1393.5154881970636),
    ("hyperfine-1.15-exit-codes.json", "hyperfine JSON", "named", "second", [1] * 6, 0.0),
    ("hyperfine-1.15-parameters.json", "hyperfine JSON", "sleep 0.001", "second", [1] * 5, 0.005878744),
    ("hyperfine-1.15-two-commands.json", "hyperfine JSON", "true", "second", [1] * 12, 0.0029095320000000003),
    ("hyperfine-1.19-two-commands.json", "hyperfine JSON", "true", "second", [1] * 6, 0.000852579),
    ("hyperfine-1.20-documented.json", "hyperfine JSON", "./new --fast", "second", [1] * 4, 0.25),
    ("hyperfine-2.0-named.json", "hyperfine JSON", "named", "second", [1] * 4, 0.001986447),
    ("hyperfine-2.0-parameters.json", "hyperfine JSON", "sleep 0.001", "second", [1] * 6, 0.0036574130000000004),
    (
        "jmh-1.21-throughput-documented.json",
        "JMH JSON",
        "org.example.Hello.world mode=thrpt",
        "ops/s",
        [3],
        3376842765.5,
    ),
    (
        *("jmh-1.37-forks-documented.json", "JMH JSON", "org.example.Sorting.sort size=1000 kind=reversed"),
        *("ns", [4, 4, 4], 12125.0),
    ),
    (
        "jmh-1.37-forks.json",
        "JMH JSON",
        "org.example.Sorting.sort kind=reversed size=10",
        "ns",
        [4, 4, 4],
        252.1216639137616,
    ),
    ("jmh-1.37-modes.json", "JMH JSON", "org.example.Hello.world mode=thrpt", "ops/s", [3, 3], 2419078337.6046004),
    ("jmh-1.37-no-fork.json", "JMH JSON", "org.example.Hello.world", "ns", [2], 0.6217488567214712),
    ("jmh-1.37-sample-documented.json", "JMH JSON", "org.example.Hello.world mode=sample", "ns", [2, 2], 41.0),
    ("ordersage-2021-documented.csv", "OrderSage CSV", "run_cg", "", [1, 1], 12.5),
    ("ordersage-2022-documented.csv", "OrderSage CSV", "a", "", [1, 1], 5.0),
    ("ordersage-2022-failures-documented.csv", "OrderSage CSV", "a", "", [1, 1], 5.0),
    ("pyperf-1.7.1.json", "pyperf JSON", "sorted", "second", [3] * 4, 8.894882812526816e-07),
    ("pyperf-2.10.0-suite.json.gz", "pyperf JSON", "sum", "second", [2] * 3, 1.1667207031607063e-06),
    ("pyperf-2.10.0.json", "pyperf JSON", "sorted", "second", [3] * 4, 2.5472949216620577e-06),
    ("pyperf-2.6.3.json", "pyperf JSON", "sorted", "second", [3] * 4, 2.5365024414192305e-06),
    (
        "pytest-benchmark-3.4.1.json",
        "pytest-benchmark JSON",
        "test_b.py::test_sum",
        "second",
        ROUNDS,
        1.37124998218496e-06,
    ),
    (
        "pytest-benchmark-4.0.0.json",
        "pytest-benchmark JSON",
        "test_b.py::test_sum",
        "second",
        ROUNDS,
        1.34204999540088e-06,
    ),
    (
        "pytest-benchmark-5.3.1-no-data.json",
        "pytest-benchmark JSON",
        "test_b.py::test_sum",
        "second",
        [1],
        9.0620001e-07,
    ),
    (
        "pytest-benchmark-5.3.1.json",
        "pytest-benchmark JSON",
        "test_b.py::test_sum",
        "second",
        ROUNDS,
        1.24045000120532e-06,
    ),
    ("table-metrics.csv", "a CSV or Parquet file with a column `value`", "a:time", "", [1, 1], 5),
    ("table-processes.csv", "a CSV or Parquet file with a column `value`", "sort", "ns", [2, 1], 105),
    ("table-values.csv", "a CSV or Parquet file with a column `value`", "value", "", [3], 1.5),
]
SUMMARIES = {
    "asv-0.6.6-no-samples.json": "the file contains only medians: run asv with --record-samples",
    "google-1.7.1-aggregates.json": "the file contains only summaries: run without --benchmark_report_aggregates_only",
    "pytest-benchmark-5.3.1-no-data.json": "save with --benchmark-save-data or --benchmark-json",
    "catch2-2.13.10-no-analysis.xml": "Catch2 writes no samples",
    "catch2-2.13.10-successes.xml": "Catch2 writes no samples",
    "catch2-2.13.10.xml": "Catch2 writes no samples",
    "catch2-3.7.1-no-analysis.xml": "Catch2 writes no samples",
    "catch2-3.7.1-successes.xml": "Catch2 writes no samples",
    "catch2-3.7.1.xml": "Catch2 writes no samples",
}


def test_every_fixture_is_in_the_table() -> None:
    assert sorted(each[0] for each in FIXTURES) == sorted(each.name for each in DATA.iterdir() if each.suffix != ".md")


@pytest.mark.parametrize(
    ("file", "kind", "test", "unit", "sizes", "first"), FIXTURES, ids=[each[0] for each in FIXTURES]
)
def test_a_fixture_is_recognized_by_its_content_and_read(
    file: str, kind: str, test: str, unit: str, sizes: list[int], first: float
) -> None:
    reader = registry.recognize(DATA / file)
    assert reader is not None
    assert reader.name == kind
    sample = registry.read(DATA / file)[0]
    assert (sample.name, sample.unit, [len(values) for values in sample.processes]) == (test, unit, sizes)
    assert sample.processes[0][0] == pytest.approx(first, rel=1e-8)
    assert SUMMARIES.get(file, "") in sample.summary
    assert bool(sample.summary) == (file in SUMMARIES)


def test_every_reader_of_a_foreign_format_has_at_least_three_fixtures_or_variants() -> None:
    kinds = [kind for _, kind, *_ in FIXTURES]
    variants = {kind: kinds.count(kind) for kind in kinds}
    assert {each.name for each in registry.READERS} - set(variants) == {"a store of cbench"}
    assert min(variants.values()) >= 3
