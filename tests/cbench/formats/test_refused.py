"""Data that the formats cannot hold, or that a program did not write, is reported in one line with the file, the format
and the place.
"""

from __future__ import annotations

import gzip
import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cbench.formats import registry
from quiet import UsageError
from tests.cbench.formats.test_fixtures import DATA

AGGREGATE = {"name": "a_mean", "time_unit": "us", "real_time": 2.0}


def google(*entries: dict[str, Any]) -> dict[str, Any]:
    return {"context": {}, "benchmarks": list(entries)}


def jmh(**metric: Any) -> list[dict[str, Any]]:
    return [{"benchmark": "b", "mode": "avgt", "primaryMetric": {"score": 2.0, "scoreUnit": "us/op", **metric}}]


def asv(**changes: Any) -> dict[str, Any]:
    return {"commit_hash": "c", "params": {}, "results": {"time_a": {"result": [1.0], **changes}}}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (google(), "google/benchmark JSON: contains no results"),
        (google({"name": "a", "real_time": 1}, {"name": "b"}), "benchmarks[1].real_time: missing"),
        (google({"name": "a", "real_time": 1, "time_unit": "h"}), "benchmarks[0].time_unit: 'h' is not one of ns, us"),
        (
            google({"name": "a", "run_type": "iteration", "skipped": "SkippedWithError", "skip_message": "no GPU"}),
            "every benchmark failed: a: no GPU",
        ),
        ({"results": [{"command": "a", "times": []}]}, "hyperfine JSON: results[0].times: no values"),
        ({"results": [{"command": "a"}]}, "hyperfine JSON: results[0].mean: missing"),
        ({"results": None}, "unknown format; cbench reads "),
        ({"results": [{"command": "a", "measurements": []}]}, "hyperfine JSON: results[0].measurements: no values"),
        (
            {"results": [{"command": "a", "measurements": [{"time_wall_clock": {"value": 1.0, "unit": "ms"}}]}]},
            "hyperfine JSON: results[0].measurements[0].time_wall_clock.unit: 'ms' must be 'second'",
        ),
        ({"results": [{"command": 5, "mean": 1}]}, "hyperfine JSON: results[0].command: not a string"),
        ({"results": [{"command": "a", "times": [1e300]}]}, "hyperfine JSON: a: a value of 1e+300 second"),
        ({"results": [{"command": "a", "times": [True]}]}, "results[0].times[0]: not a number"),
        ({"results": [{"command": "a", "times": [10**30]}]}, "results[0].times[0]: an integer of more than 64 bits"),
        (
            {"machine_info": {}, "benchmarks": [{"name": "a", "stats": {"data": [1, None]}}]},
            "pytest-benchmark JSON: benchmarks[0].stats.data[1]: not a number",
        ),
        ({"machine_info": {}, "benchmarks": [], "datetime": "soon"}, "datetime: not a date"),
        ({"version": "1.0", "benchmarks": 5}, "pyperf JSON: benchmarks: not an array"),
        (
            {"version": "1.0", "benchmarks": [{"metadata": {"name": "n"}, "runs": [{"values": [1.0, None]}]}]},
            "pyperf JSON: benchmarks[0].runs[0].values[1]: not a number",
        ),
        (
            {"version": "1.0", "benchmarks": [{"metadata": {"name": "n", "unit": "h"}, "runs": [{"values": [1.0]}]}]},
            "pyperf JSON: benchmarks[0]: invalid metadata 'unit' value: 'h'",
        ),
        (asv(result=None), "asv results: results: no benchmark succeeded"),
        (asv(params=[["1", "2"]]), "results.time_a.result: 1 values, but the parameters have 2 combinations"),
        (jmh(rawData=[]), "JMH JSON: [0].primaryMetric: no values"),
        (jmh(rawData=[[1.0], []]), "[0].primaryMetric.rawData[1]: no values"),
        (
            jmh(rawDataHistogram=[[[[1.0]]]]),
            "[0].primaryMetric.rawDataHistogram[0][0][0]: not a pair of a value and its count",
        ),
        (jmh(rawDataHistogram=[[[[1.0, 0]]]]), "[0].primaryMetric.rawDataHistogram[0][0]: no values"),
    ],
)
def test_incomplete_json_is_reported_in_one_line(document: object, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(document))
    refused(path, message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("BenchmarkA 10 5 ns/op 7\n", "Go benchmark text: line 1: a value without a unit"),
        ("pkg: p\nBenchmarkA 10 fast ns/op\n", "Go benchmark text: line 2: 'fast' is not a finite number"),
        ("<Catch2TestRun>\n<TestCase>\n</oops>", "Catch2 XML: line 3: mismatched tag"),
        ("<Catch name='a'></Catch>", "contains no BenchmarkResults: run the program with its benchmarks"),
        (
            '<!DOCTYPE a [<!ENTITY b "c">]>\n<Catch2TestRun>&b;</Catch2TestRun>',
            "Catch2 XML: line 1: contains a document type, which Catch2 never writes",
        ),
        ("<Catch><TestCase name='a'>\n<mean value='-1'/></TestCase></Catch>", "line 2: the mean '-1' is not a time"),
        ("test,value\na,1\nb\n", "line 3: 1 columns, not 2"),
        ("test,value,value\na,1,2\n", "line 1: two columns are named 'value'"),
        ("[study]\nrepetitions = 2\n", "unknown format; cbench reads"),
        ("[[test]] # of a study\nname = 'a'\n", "unknown format; cbench reads"),
        ("[" * 100_000, "damaged JSON: nested too deeply"),
        ("[" + "1" * 5001 + "]", "damaged JSON: an integer of more than 64 bits"),
        ("test,value\na,1_0\n", "line 2: column value: '1_0' is not a finite number"),
        ("test,value\na,\n", "no values in column value"),
        (
            "run_uuid,order_number,order_type,test_command,completion_status,result\nr,0,fixed,a,Done,1\n",
            "OrderSage CSV: line 2: completion_status is 'Done', neither Success nor Failure",
        ),
        (
            "run_uuid,order_number,order_type,test_command,completion_status,result\nr,0,fixed,a,Failure,1\n",
            "OrderSage CSV: all trials failed",
        ),
    ],
)
def test_incomplete_text_is_reported_in_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "r.txt"
    path.write_text(text)
    refused(path, message)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": [1.0, 2.0]}, "sum/new/sample.json: times: 2 values, but iters has 10"),
        ({"iters": [0.0] * 10}, "sum/new/sample.json: iters: a sample without iterations"),
        ({"iters": None}, "sum/new/sample.json: iters: missing"),
    ],
)
def test_a_damaged_criterion_directory_is_reported_in_one_line(
    change: dict[str, object], message: str, tmp_path: Path
) -> None:
    shutil.copytree(DATA / "criterion-0.3.6", tmp_path / "criterion")
    sample = tmp_path / "criterion/sum/new/sample.json"
    sample.write_text(json.dumps(json.loads(sample.read_text()) | change))
    refused(tmp_path / "criterion", message)


def test_a_damaged_file_of_criterion_that_names_the_benchmark_is_the_one_that_is_named(tmp_path: Path) -> None:
    shutil.copytree(DATA / "criterion-0.3.6", tmp_path / "criterion")
    (tmp_path / "criterion/sum/new/benchmark.json").write_text("{}")
    refused(tmp_path / "criterion", "Criterion directory: sum/new/benchmark.json: full_id: missing")


def refused(path: Path, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        registry.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def read(path: Path, document: object) -> Any:
    path.write_text(json.dumps(document))
    return registry.read(path)


def test_summaries_of_old_google_benchmarks_are_recognized_by_their_names(tmp_path: Path) -> None:
    entries = google({"name": "a", "time_unit": "us", "real_time": 1.0}, AGGREGATE, {**AGGREGATE, "name": "a_stddev"})
    (sample,) = read(tmp_path / "r", entries)
    assert (sample.name, sample.processes, sample.summary) == ("a", ((1000.0,),), "")
    (sample,) = read(tmp_path / "r", google(AGGREGATE))
    assert (sample.name, sample.processes) == ("a", ((2000.0,),))
    assert "--benchmark_report_aggregates_only" in sample.summary


def test_the_median_is_taken_of_several_summaries(tmp_path: Path) -> None:
    (sample,) = read(tmp_path / "r", google(AGGREGATE, {**AGGREGATE, "name": "a_median", "real_time": 1.5}))
    assert sample.processes == ((1500.0,),)


def test_files_without_samples_have_one_summary_per_process(tmp_path: Path) -> None:
    (fine,) = read(tmp_path / "r", {"results": [{"command": "a", "mean": 2.0, "median": 1.5}]})
    assert (fine.processes, fine.summary) == (((1.5,),), "the file contains only summaries: `times` is missing")
    (jmh_sample,) = read(tmp_path / "r", jmh())
    assert (jmh_sample.processes, jmh_sample.summary) == (
        ((2000.0,),),
        "the file contains only summaries: `rawData` is missing",
    )


def test_a_benchmark_that_catch2_repeats_has_its_values_in_one_process(tmp_path: Path) -> None:
    text = (DATA / "catch2-3.7.1.xml").read_text()
    begin, end = text.index("    <BenchmarkResults"), text.index("    <Section ")
    (tmp_path / "r.xml").write_text(text[:end] + text[begin:end] + text[end:])
    first, _ = registry.read(tmp_path / "r.xml")
    assert first.processes == ((285.546, 285.546),)


@pytest.mark.parametrize("encoding", ["nosuch", "UTF-16", "latin-1"])
def test_the_encoding_that_an_xml_document_names_does_not_matter(encoding: str, tmp_path: Path) -> None:
    text = (DATA / "catch2-3.7.1.xml").read_text().replace('"UTF-8"', f'"{encoding}"').replace("sums", "sümmen")
    (tmp_path / "r.xml").write_text(text)
    assert registry.read(tmp_path / "r.xml")[0].name == "sümmen: accumulate"


def test_whole_numbers_of_a_table_stay_exact(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(f"value,test\n{2**60 + 1},a\n")
    assert registry.read(tmp_path / "r.csv")[0].processes == ((2**60 + 1,),)


def test_a_compressed_document_that_needs_gigabytes_as_lists_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cbench.formats.content.MOST_JSON", 1 << 20, raising=False)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(b"[" + b"[]," * (1 << 19) + b"[]]", 1))
    with pytest.raises(UsageError, match="larger than 1 MiB, the maximum of compressed JSON; decompress it"):
        registry.read(path)


@pytest.mark.slow
def test_a_document_that_does_not_fit_into_memory_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    path.write_bytes(b"[" + b"[]," * (3 << 20) + b"[]]")
    limit = 200 << 20
    done = subprocess.run(
        [sys.executable, "-m", "cbench", "compare", str(path), str(path)],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert "large.json: too large for the free memory" in done.stderr
