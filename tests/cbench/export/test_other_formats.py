"""Results of other programs exported: our files are read again, and only samples are exported as samples."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from statistics import median

import pytest

from cbench.export.bencher import BencherExporter
from cbench.export.benchfmt import BenchfmtExporter
from cbench.export.export import ExportOptions, export
from cbench.export.exporter import ExportSource, ExportTable
from cbench.export.markdown import MarkdownExporter
from cbench.export.otava import OtavaExporter
from cbench.formats import reader, registry
from cbench.model import Trial
from cbench.store.records import EACH_TRIAL, NO_CPU
from cbench.store.store import Store
from quiet import UsageError, ticks
from tests.cbench.formats.test_fixtures import DATA, FIXTURES, SUMMARIES
from tests.cbench.store.storing import HOST, stored

BENCHMARK_LINE = re.compile(r"^Benchmark[^a-z\s]\S* [1-9][0-9]*(?: -?[0-9.]+(?:e-?[0-9]+)? [^\s0-9]\S*)+$")
WALL = {"name": "wall", "unit": "ns", "quantum": 1}
FOREIGN = [each[0] for each in FIXTURES]


def written(data: Path, kind: str, folder: Path, clean_only: bool = False) -> Path:
    output = folder / f"out.{kind}"
    export(ExportOptions(str(data), kind, str(output), clean_only))
    return output


def values(samples: tuple[reader.TestSample, ...]) -> dict[str, tuple[tuple[float, ...], ...]]:
    return {sample.name: sample.processes for sample in samples}


def refused(data: Path, kind: str, folder: Path, message: str, clean_only: bool = False) -> None:
    with pytest.raises(UsageError) as caught:
        written(data, kind, folder, clean_only)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("file", [each for each in FOREIGN if each not in SUMMARIES])
def test_a_csv_of_any_format_has_its_processes_and_values(file: str, tmp_path: Path) -> None:
    data = DATA / file
    assert values(registry.read(written(data, "csv", tmp_path))) == pytest.approx(values(registry.read(data)))


@pytest.mark.parametrize("file", FOREIGN)
@pytest.mark.parametrize("kind", ["benchfmt", "bencher", "markdown"])
def test_formats_of_headlines_take_every_format(file: str, kind: str, tmp_path: Path) -> None:
    assert written(DATA / file, kind, tmp_path).stat().st_size


@pytest.mark.parametrize("file", SUMMARIES)
@pytest.mark.parametrize("kind", ["csv", "pyperf", "hyperfine", "parquet"])
def test_formats_of_samples_refuse_summaries_with_the_reason(file: str, kind: str, tmp_path: Path) -> None:
    refused(DATA / file, kind, tmp_path, f"{SUMMARIES[file]}; --format {kind} requires samples; use markdown")


def test_hyperfine_keeps_every_time_of_hyperfine(tmp_path: Path) -> None:
    data = DATA / "hyperfine-1.15-two-commands.json"
    again = written(data, "hyperfine", tmp_path)
    assert registry.read(again) == registry.read(data)
    (first, _), (theirs, _) = (json.loads(path.read_text())["results"] for path in (again, data))
    assert {key: first[key] for key in ("command", "mean", "median", "stddev", "min", "max")} == pytest.approx(
        {key: theirs[key] for key in ("command", "mean", "median", "stddev", "min", "max")}
    )
    assert "exit_codes" not in first


def test_pyperf_reads_the_times_of_another_program(tmp_path: Path) -> None:
    data = DATA / "google-1.8.3-repetitions.json"
    path = written(data, "pyperf", tmp_path)
    again = {name: [[each * 1e9 for each in of] for of in rows] for name, rows in values(registry.read(path)).items()}
    assert again == {name: [pytest.approx(of) for of in rows] for name, rows in values(registry.read(data)).items()}
    command = [sys.executable, "-m", "pyperf", "stats", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "sum_range" in done.stdout


@pytest.mark.parametrize("file", FOREIGN)
def test_every_line_of_benchfmt_is_a_benchmark_of_go(file: str, tmp_path: Path) -> None:
    lines = written(DATA / file, "benchfmt", tmp_path).read_text().splitlines()
    results = [line for line in lines if not line.startswith("cpu: ")]
    assert results
    assert [line for line in results if not BENCHMARK_LINE.match(line)] == []


def test_benchfmt_of_go_has_the_tests_and_units_of_go_with_a_line_per_process(tmp_path: Path) -> None:
    data = DATA / "go-1.19-count.txt"
    again, theirs = registry.read(written(data, "benchfmt", tmp_path)), registry.read(data)
    assert [(each.name, each.unit) for each in again] == [(each.name, each.unit) for each in theirs]
    assert [each.processes for each in again] == [((median(each.processes[0]),),) for each in theirs]


def test_benchfmt_has_a_line_per_process_because_only_processes_are_independent(tmp_path: Path) -> None:
    store = stored(tmp_path / "s.db", [[100, 103, 105], [200, 203, 205]])
    lines = written(store, "benchfmt", tmp_path).read_text().splitlines()
    assert lines == [
        "cpu: Some CPU",
        "BenchmarkHash_n=1000 1 103 TSC-ticks/op",
        "BenchmarkHash_n=1000 1 203 TSC-ticks/op",
    ]


def test_tests_whose_names_are_equal_in_benchfmt_stay_apart(tmp_path: Path) -> None:
    table = tmp_path / "names.csv"
    names = ("sort", "Sort", "a b", "a_b")
    table.write_text("test,value,unit\n" + "".join(f"{name},{number},ns\n" for number, name in enumerate(names, 1)))
    again = registry.read(written(table, "benchfmt", tmp_path))
    assert {each.name: each.processes for each in again} == {
        "BenchmarkSort": ((1,),), "BenchmarkSort#01": ((2,),), "BenchmarkA_b": ((3,),), "BenchmarkA_b#01": ((4,),),
    }  # fmt: skip


def test_a_single_process_is_one_line_of_benchfmt(tmp_path: Path) -> None:
    store = stored(tmp_path / "s.db", [[100, 103, 105]])
    assert len(written(store, "benchfmt", tmp_path).read_text().splitlines()) == 1 + 1


def test_hyperfine_has_one_time_per_process_whatever_the_rounds(tmp_path: Path) -> None:
    store = stored(tmp_path / "s.db", [[100, 103, 105], [200, 203, 205]], counter=WALL)
    (result,) = json.loads(written(store, "hyperfine", tmp_path).read_text())["results"]
    assert result["times"] == [103e-9, 203e-9]
    assert list(result) == ["command", "mean", "stddev", "median", "min", "max", "times"]


def test_hyperfine_refuses_the_rounds_of_a_single_process(tmp_path: Path) -> None:
    name = "test_sort: 20 values of one process, which, unlike hyperfine's times, are not independent; "
    refused(DATA / "pytest-benchmark-5.3.1.json", "hyperfine", tmp_path, name[name.index(" values") :])
    store = stored(tmp_path / "s.db", [[100, 103, 105]], counter=WALL)
    more = "hash n=1000: 3 values of one process, which, unlike hyperfine's times, are not independent; "
    refused(store, "hyperfine", tmp_path, f"{more}measure more processes (cbench run --processes 10)")


def commands(path: Path, values: list[list[int]], layouts: int = 0) -> Path:
    """A store of two commands, in as many runs as there are rows of values: each trial is a process."""
    for row in values:
        with Store.create(path, HOST, []) as store:
            series = [
                store.begin(
                    {"workload": name, "params": {}, "cpu": NO_CPU, "process": 0, "processes": EACH_TRIAL}
                    | {"counter": WALL, "comparison": "one"}
                )
                for name in ("./a", "./b")
            ]
            for number, value in enumerate(row):
                counts = {"layout": number % layouts} if layouts else {}
                begin = ticks()
                store.add_together(
                    [(each, [Trial(value + at, 0, begin=begin, counts=counts)]) for at, each in enumerate(series)]
                )
            for each in series:
                store.finish(each, {})
    return path


@pytest.mark.parametrize(("layouts", "processes"), [(0, 8), (4, 4)])
@pytest.mark.parametrize("kind", ["csv", "parquet", "pyperf", "hyperfine", "benchfmt"])
def test_an_export_of_commands_keeps_their_processes(kind: str, layouts: int, processes: int, tmp_path: Path) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    store = commands(tmp_path / "s.db", [[1000, 1100, 1200, 1300], [1010, 1110, 1210, 1310]], layouts)
    assert [len(each.processes) for each in registry.read(store)] == [processes] * 2
    again = registry.read(written(store, kind, tmp_path))
    if kind != "benchfmt":  # where a file is a process
        assert [len(each.processes) for each in again] == [processes] * 2
    assert [sum(map(len, each.processes)) for each in again] == [
        processes if kind in ("hyperfine", "benchfmt") else 8
    ] * 2


@pytest.mark.parametrize(("layouts", "processes"), [(0, 3), (2, 2)])
def test_otava_knows_when_each_trial_of_a_command_began(layouts: int, processes: int, tmp_path: Path) -> None:
    store = commands(tmp_path / "s.db", [[1000, 1100, 1200]], layouts)
    rows = list(csv.reader(StringIO(written(store, "otava", tmp_path).read_text())))
    assert rows[0] == ["time", "./a", "./b"]
    assert len(rows) == 1 + processes


def test_github_action_has_what_its_parser_requires(tmp_path: Path) -> None:
    data = DATA / "jmh-1.37-forks-documented.json"
    (first, _) = json.loads(written(data, "github-action-benchmark", tmp_path).read_text())
    assert first == {
        "name": "org.example.Sorting.sort size=1000 kind=reversed",
        "unit": "ns",
        "value": 12562.5,
        "range": "12187.5 to 13125",
        "extra": "3 processes, 12 values",
    }


def test_rates_are_a_separate_file_for_github_action(tmp_path: Path) -> None:
    data = DATA / "go-1.19-count.txt"
    smaller, bigger = (
        {each["unit"] for each in json.loads(written(data, kind, tmp_path).read_text())}
        for kind in ("github-action-benchmark", "github-action-benchmark-bigger")
    )
    assert bigger == {"MB/s"}
    assert smaller == {"ns", "B/op", "allocs/op", "widgets/op"}
    other = "contains no rates; use --format github-action-benchmark"
    refused(DATA / "pyperf-2.10.0.json", "github-action-benchmark-bigger", tmp_path, other)
    other = "contains no times or sizes; use --format github-action-benchmark-bigger"
    refused(DATA / "jmh-1.21-throughput-documented.json", "github-action-benchmark", tmp_path, other)


def test_bencher_has_measures_by_unit(tmp_path: Path) -> None:
    metrics = json.loads(written(DATA / "go-1.19-count.txt", "bencher", tmp_path).read_text())
    assert list(metrics["BenchmarkSort/n=10-2"]) == ["latency", "mb-s", "b-op", "allocs-op"]
    assert metrics["BenchmarkSort/n=10-2"]["latency"] == {"value": 917.9}
    metrics = json.loads(written(DATA / "jmh-1.21-throughput-documented.json", "bencher", tmp_path).read_text())
    assert list(metrics["org.example.Hello.world mode=thrpt"]) == ["throughput"]
    metrics = json.loads(written(DATA / "hyperfine-1.20-documented.json", "bencher", tmp_path).read_text())
    assert metrics["./new --fast"]["latency"] == {"value": 250e6, "lower_value": 234375e3, "upper_value": 265625e3}


def test_otava_has_a_row_per_process_in_chronological_order(tmp_path: Path) -> None:
    folder = tmp_path / "history"
    folder.mkdir()
    text = (DATA / "google-1.8.3-repetitions.json").read_text()
    date = json.loads(text)["context"]["date"]
    for name, day in (("a", "2026-02-02"), ("b", "2026-02-01")):
        (folder / name).write_text(text.replace(date, f"{day}T10:00:00+00:00"))
    rows = list(csv.reader(StringIO(written(folder, "otava", tmp_path).read_text())))
    assert rows[0] == ["time", "sum_range", "sort"]
    assert [row[0] for row in rows[1:]] == ["2026-02-01T10:00:00+00:00", "2026-02-02T10:00:00+00:00"]
    assert float(rows[1][1]) == median(registry.read(folder)[0].processes[0])


def test_otava_refuses_what_has_no_time_or_is_not_a_whole_table(tmp_path: Path) -> None:
    data = DATA / "hyperfine-1.20-documented.json"
    refused(data, "otava", tmp_path, "./new --fast: the start time of each process is unknown, but Otava needs it")
    folder = tmp_path / "history"
    folder.mkdir()
    document = json.loads((DATA / "google-1.8.3-repetitions.json").read_text())
    (folder / "a").write_text(json.dumps(document))
    document["benchmarks"] = [each for each in document["benchmarks"] if each["run_name"] == "sort"]
    (folder / "b").write_text(json.dumps(document))
    refused(folder, "otava", tmp_path, "sum_range has 1 and sort 2 processes, but Otava needs a number in each row")


def test_markdown_escapes_what_would_break_its_table(tmp_path: Path) -> None:
    (tmp_path / "r.json").write_text(json.dumps({"results": [{"command": "a | b <c>", "times": [1.0, 2.0, 4.0]}]}))
    assert written(tmp_path / "r.json", "markdown", tmp_path).read_text() == (
        "| test | unit | median | lowest | highest | processes | values |\n"
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |\n"
        "| a \\| b &lt;c> | second | 2 | 1 | 4 | 3 | 3 |\n"
    )


def test_polluted_rows_are_left_out_on_request_where_a_format_marks_them(tmp_path: Path) -> None:
    path = written(DATA / "table-processes.csv", "csv", tmp_path, clean_only=True)
    assert values(registry.read(path)) == {"sort": ((105,), (107,)), "sum": ((11,), (12,))}
    message = "has no trial that is marked as polluted; omit the option"
    refused(DATA / "pyperf-2.10.0.json", "csv", tmp_path, message, clean_only=True)


def test_units_that_a_format_does_not_know_are_refused(tmp_path: Path) -> None:
    data = DATA / "jmh-1.21-throughput-documented.json"
    refused(data, "hyperfine", tmp_path, "mode=thrpt: the unit is ops/s, but hyperfine's files contain only seconds")
    refused(
        data,
        "pyperf",
        tmp_path,
        "mode=thrpt: the unit is ops/s, but pyperf supports only seconds, bytes and whole numbers",
    )
    zero = "named: a value of 0, which pyperf cannot represent; use --format csv"
    refused(DATA / "hyperfine-1.15-exit-codes.json", "pyperf", tmp_path, zero)


def test_the_file_itself_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("value\n1\n")
    with pytest.raises(UsageError, match=r"r\.csv: is read as input, and would be overwritten"):
        export(ExportOptions(str(path), "markdown", str(path)))
    with pytest.raises(UsageError, match=r"r\.csv: is read as input, and would be overwritten"):
        export(ExportOptions(str(tmp_path), "markdown", str(path)))
    new = tmp_path / "new.md"
    with pytest.raises(UsageError, match=r"new\.md: lies in .*, whose files are all read; choose another directory"):
        export(ExportOptions(str(tmp_path), "markdown", str(new)))
    assert not new.exists()


def test_parquet_of_another_program_keeps_its_values(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for file in ("table-processes.csv", "hyperfine-1.20-documented.json"):  # whole numbers, and others
        again = registry.read(written(DATA / file, "parquet", tmp_path))
        assert values(again) == values(registry.read(DATA / file))


@pytest.mark.parametrize("kind", ["benchfmt", "github-action-benchmark", "bencher", "otava", "markdown"])
def test_a_store_is_written_in_every_format_of_headlines(kind: str, tmp_path: Path) -> None:
    store = stored(tmp_path / "s.db", [[100, 103, 105], [200, 203, 205]])
    text = written(store, kind, tmp_path).read_text()
    assert "103" in text
    assert "203" in text


def test_the_store_of_a_study_is_refused_by_formats_of_tests(tmp_path: Path) -> None:
    source = ExportSource(tmp_path / "s.db", ExportTable({}, ()), 1, what="a study", extra="orders")
    for exporter in (BenchfmtExporter(), BencherExporter(), OtavaExporter(), MarkdownExporter()):
        with pytest.raises(UsageError, match="a study, whose orders this format cannot represent; use --format csv"):
            exporter.write(source, clean_only=False)
