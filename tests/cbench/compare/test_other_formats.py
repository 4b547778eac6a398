"""`cbench compare` with results of other programs, and the commands that reject such results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import cbench
from cbench.compare import table
from cbench.compare.result import compare
from cbench.export.export import ExportOptions, export
from cbench.formats import reader, registry
from cbench.machine.describe import describe
from cbench.order import analyze
from cbench.results import json_object
from cbench.screen.data import read_table
from cbench.store.records import EACH_TRIAL
from cbench.store.store import Store
from quiet import UsageError
from tests.cbench.compare.comparing import fails
from tests.cbench.formats.test_fixtures import DATA, FIXTURES
from tests.cbench.store.storing import HOST, TICKS, facts, noisy, stored, trials

TREATMENTS = ("a store of cbench", "OrderSage CSV", "a CSV or Parquet file with a column `value`")
WITHOUT_ORDERS = [file for file, kind, *_ in FIXTURES if kind not in TREATMENTS]


def runs(folder: Path, factor: float) -> Path:
    """Five files of google/benchmark, each of them a process."""
    folder.mkdir()
    document = json.loads((DATA / "google-1.8.3-repetitions.json").read_text())
    for number in range(5):
        for at, each in enumerate(document["benchmarks"]):
            each["real_time"] = 1000 * factor + number + at / 10
        (folder / f"{number}.json").write_text(json.dumps(document))
    return folder


@pytest.mark.parametrize("file", [file for file, *_ in FIXTURES if file != "hyperfine-1.15-exit-codes.json"])
def test_a_file_of_every_format_compares_with_itself(file: str) -> None:
    result = compare(DATA / file, DATA / file)
    assert result.only_in_old == result.only_in_new == result.other_units == ()
    assert all(each.ratio == 1 for each in result.comparisons)


def test_folders_of_files_are_compared_process_by_process(tmp_path: Path) -> None:
    result = compare(runs(tmp_path / "a", 1), runs(tmp_path / "b", 1.1))
    assert [(each.test, each.a.processes, each.b.processes) for each in result.comparisons] == [
        ("sum_range", 5, 5),
        ("sort", 5, 5),
    ]
    assert [each.outcome for each in result.comparisons] == ["higher", "higher"]


def test_a_test_of_a_folder_is_selected_by_its_name(tmp_path: Path) -> None:
    folder = runs(tmp_path / "a", 1)
    (test,) = compare(f"{folder}:sort", f"{folder}:sort").comparisons
    assert test.test == "sort"
    fails(f"{folder}:hash", folder, "no test 'hash'; the file has 'sum_range', 'sort'")


@pytest.mark.parametrize(
    ("file", "advice"),
    [
        ("google-1.7.1-repetitions.json", "(run the benchmark program 5 times, each with its own --benchmark_out"),
        (
            "pytest-benchmark-5.3.1.json",
            "(run pytest 5 times, each with its own --benchmark-json, and give the directory",
        ),
        ("go-1.19-packages.txt", "(run `go test -bench . -count 10` 5 times, each into a file of its own"),
        ("jmh-1.21-throughput-documented.json", "(JMH's -f 4)"),
        ("catch2-3.7.1.xml", "(run the test program 5 times, each with its own --out"),
        ("criterion-0.3.6", "(run `cargo bench` 5 times, copy target/criterion after each into one directory"),
    ],
)
def test_too_few_processes_name_the_option_of_the_program(file: str, advice: str) -> None:
    verdict = compare(DATA / file, DATA / file).comparisons[0].verdict
    assert verdict.startswith("cannot tell: ")
    assert advice in verdict


def test_the_table_of_a_suite_names_the_option_of_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    data = DATA / "pytest-benchmark-5.3.1.json"
    result = compare(data, data)
    assert len(result.tests) > 1
    table.suite(result)
    (line,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("too few processes"))
    assert line.endswith(
        "measure at least 5 per side (run pytest 5 times, each with its own --benchmark-json, and give the "
        "directory of these files)"
    )


def test_a_store_keeps_its_own_advice(tmp_path: Path) -> None:
    store = stored(tmp_path / "a.db", noisy(1e6, 1, 9, seed=1))
    assert "(cbench run --processes 4)" in compare(store, store).comparisons[0].verdict


def test_a_test_is_selected_by_the_end_of_its_name_if_only_one_has_it(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Store.create(path, HOST, []) as store:
        for name in ("tests/test_b.py::test_sum", "tests/test_b.py::test_sort", "tests/test_c.py::test_sort"):
            series = store.begin({**facts(0, counter=TICKS), "workload": name, "params": {}})
            store.add(series, trials([1000, 1001, 1002]))
            store.finish(series, {})
    (test,) = compare(f"{path}:test_sum", f"{path}:test_sum").comparisons
    assert test.test == "tests/test_b.py::test_sum"
    fails(f"{path}:test_sort", path, "no test 'test_sort'; the file has ")


@pytest.mark.parametrize(
    ("more", "advice"),
    [
        ({"interrupted": {"preempted": 1}}, "(run pytest 4 times, with the same --cbench-store=FILE)"),
        ({"processes": EACH_TRIAL}, "(cbench run --trials 4 -- COMMAND)"),
        ({"processes": EACH_TRIAL, "comparison": "c"}, "(cbench ab --blocks 4)"),
    ],
)
def test_a_store_names_the_option_of_the_program_that_wrote_it(
    more: dict[str, Any], advice: str, tmp_path: Path
) -> None:
    with Store.create(tmp_path / "a.db", HOST, []) as store:
        series = store.begin(facts(**more))
        store.add(series, trials([1000]))
        store.finish(series, {})
    assert advice in compare(tmp_path / "a.db", tmp_path / "a.db").comparisons[0].verdict


def test_summaries_are_compared_as_one_value_per_process_with_a_note() -> None:
    data = DATA / "google-1.7.1-aggregates.json"
    (first, *_) = compare(data, data).comparisons
    assert "A: the file contains only summaries: run without --benchmark_report_aggregates_only" in first.notes


def test_a_summary_has_no_minimum() -> None:
    data = DATA / "pytest-benchmark-5.3.1-no-data.json"
    fails(data, data, "test_sum: --headline min: the file contains only summaries: save with", headline="min")


def test_samples_of_two_programs_in_different_units_are_not_compared(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("test,unit,value\nsort,byte,5\n")
    fails(tmp_path / "a.csv", hyperfine(tmp_path / "b.json", [1.0]), "sort: A is in byte, B in second")


def hyperfine(path: Path, times: list[float]) -> Path:
    path.write_text(json.dumps({"results": [{"command": "sort", "times": times}]}))
    return path


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9), ("second", 1)])
def test_times_in_different_units_are_compared(unit: str, factor: float, tmp_path: Path) -> None:
    times = [1.0, 1.01, 1.02, 1.03, 1.04]
    rows = [f"sort,{unit},{number},{1.5 * factor * value}" for number, value in enumerate(times)]
    (tmp_path / "b.csv").write_text("\n".join(["test,unit,process,value", *rows]))
    result = compare(hyperfine(tmp_path / "a.json", times), tmp_path / "b.csv")
    (test,) = result.comparisons
    assert (test.unit, result.regressions) == ("second" if unit == "second" else "ns", ("sort",))
    assert test.ratio == pytest.approx(1.5)


def test_a_store_compares_with_its_own_export_to_hyperfine(tmp_path: Path) -> None:
    wall = {"name": "wall", "unit": "ns", "quantum": 1}
    store = stored(tmp_path / "a.db", noisy(1e6, 6, 9, seed=1), counter=wall)
    export(ExportOptions(str(store), "hyperfine", str(tmp_path / "h.json")))
    (test,) = compare(store, tmp_path / "h.json").comparisons
    assert (test.unit, test.ratio, test.a.processes, test.b.processes) == ("ns", 1, 6, 6)


def test_two_pytest_files_of_the_same_code_are_not_judged_after_an_export(tmp_path: Path) -> None:
    data = DATA / "pytest-benchmark-5.3.1.json"
    export(ExportOptions(str(data), "benchfmt", str(tmp_path / "a.txt")))
    assert compare(tmp_path / "a.txt", tmp_path / "a.txt").exit_code == 2


@pytest.mark.parametrize("file", WITHOUT_ORDERS)
def test_order_analyze_refuses_a_format_without_orders(file: str) -> None:
    kind = next(kind for name, kind, *_ in FIXTURES if name == file)
    with pytest.raises(
        UsageError, match="has no orders; run the commands with `cbench order run`, or give a CSV"
    ) as caught:
        analyze.read(DATA / file)
    assert str(caught.value).startswith(f"{DATA / file}: {kind} has no orders; ")


@pytest.mark.parametrize("file", WITHOUT_ORDERS)
def test_screen_analyze_refuses_a_format_without_treatments(file: str) -> None:
    with pytest.raises(UsageError, match="has no treatments; run them with `cbench screen run`, or give a CSV"):
        read_table.read(DATA / file)


def test_read_results_reads_every_format_and_stores_as_before(tmp_path: Path) -> None:
    for file, *_ in FIXTURES:
        samples = cbench.read_results(DATA / file)
        assert samples
        assert all(isinstance(each, reader.TestSample) for each in samples)
    store = stored(tmp_path / "a.db", [[5, 6], [7, 8]])
    assert [type(each).__name__ for each in cbench.read_results(store)] == ["StoredSeries"] * 2
    shutil.copy(store, tmp_path / "b.db")
    (sample,) = cbench.read_results(tmp_path)
    assert isinstance(sample, reader.TestSample)
    assert sample.processes == ((5, 6), (7, 8)) * 2


def test_results_of_the_same_command_are_tests_of_their_own(tmp_path: Path) -> None:
    results = [
        {"command": "sort", "times": [1.0, 2.0], "parameters": {"n": "1"}},
        {"command": "sort", "times": [3.0], "parameters": {"n": "2"}},
        {"command": "sort", "times": [4.0], "parameters": {"n": "2"}},
        {"command": "sum", "times": [5.0], "parameters": {"n": "2"}},
        {"command": "wc", "times": [6.0]},
        {"command": "wc", "times": [7.0]},
    ]
    (tmp_path / "h.json").write_text(json.dumps({"results": results}))
    found = {each.name: each.processes for each in registry.read(tmp_path / "h.json")}
    assert found == {
        "sort n=1": ((1.0,), (2.0,)),
        "sort n=2": ((3.0,),),
        "sort n=2 #2": ((4.0,),),
        "sum": ((5.0,),),
        "wc": ((6.0,),),
        "wc #2": ((7.0,),),
    }


def test_a_name_of_several_lines_is_the_same_after_an_export_to_pyperf(tmp_path: Path) -> None:
    name = "sh -c 'a\n\tb'"
    store = stored(tmp_path / "a.db", [[5, 6], [7, 8]], workload=name, params={})
    (tmp_path / "h.json").write_text(json.dumps({"results": [{"command": name, "times": [1.0, 2.0]}]}))
    for path in (store, tmp_path / "h.json"):
        export(ExportOptions(str(path), "pyperf", str(tmp_path / "p.json")))
        assert [each.test for each in compare(path, tmp_path / "p.json", force=True).comparisons] == [name]


def test_a_host_of_several_lines_is_named_in_one(tmp_path: Path) -> None:
    paths = [
        stored(tmp_path / f"{letter}.db", noisy(1e6, 5, 5, seed=1), host={"passport": {"cpu": f"CPU\n{letter}"}})
        for letter in "ab"
    ]
    result = compare(*paths)
    assert result.hosts_differ == ("cpu CPU a and CPU b",)


def test_a_counter_that_is_known_has_no_reason_for_being_unknown(tmp_path: Path) -> None:
    host = json_object(describe({0}, frozenset()))
    passport = host["passport"]
    assert isinstance(passport, dict)
    assert passport["counter"] is None
    assert passport["unknown"]["counter"] == "not a property of the host: stored with each series"  # type: ignore[index,call-overload]
    (sample,) = registry.read(stored(tmp_path / "a.db", [[5, 6]], host=host))
    assert sample.passport is not None
    assert sample.passport.counter == "tsc"
    assert "counter" not in sample.passport.unknown
