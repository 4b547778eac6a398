"""Exports: their target programs read the files, and every value in them is exact."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cbench.cli import app
from cbench.export.export import ExportOptions, export
from cbench.model import Trial
from cbench.store.store import Store
from quiet.errors import QuietError, UsageError
from tests.cbench.running import cbench, error_line
from tests.cbench.store.storing import CYCLES, HOST, TICKS, facts, noisy, stored, trials
from tests.cbench.study.storing import stored as study_stored

HUGE = 2**64 - 1


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return stored(tmp_path / "s.db", noisy(1e6, 5, 12, seed=1))


@pytest.fixture
def polluted(tmp_path: Path) -> Path:
    path = tmp_path / "p.db"
    with Store.create(path, HOST, []) as store:
        for process in range(3):
            series = store.begin(facts(process))
            store.add(series, trials([100, 900, 101, 100], {1: 'interrupt LOC, or "so"'}))
    return path


def table(path: Path, clean_only: bool = False) -> list[dict[str, str]]:
    out = path.with_suffix(".csv")
    export(ExportOptions(str(path), "csv", str(out), clean_only))
    with open(out, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def pyperf(*arguments: str | Path) -> str:
    """The output of `python -m pyperf`, which must not fail."""
    command = [sys.executable, "-m", "pyperf", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def as_pyperf(path: Path, clean_only: bool = False) -> Path:
    out = path.with_suffix(".json")
    export(ExportOptions(str(path), "pyperf", str(out), clean_only))
    return out


def loaded(path: Path) -> Any:
    return json.loads(path.read_text())


def test_csv_has_a_row_per_trial_with_the_columns_of_a_study(polluted: Path) -> None:
    rows = table(polluted)
    assert len(rows) == 12
    assert {name: rows[1][name] for name in ("test", "order", "run", "process", "position", "value", "unit")} == {
        "test": "hash n=1000",
        "order": "fixed",
        "run": "1",
        "process": "0",
        "position": "1",
        "value": "900",
        "unit": "TSC ticks",
    }
    assert (rows[1]["polluted"], rows[1]["cause"]) == ("1", 'interrupt LOC, or "so"')
    assert (rows[0]["polluted"], rows[0]["cause"]) == ("0", "")


def test_csv_without_polluted_trials_keeps_their_positions(polluted: Path) -> None:
    assert [row["position"] for row in table(polluted, clean_only=True)] == ["0", "2", "3"] * 3


def test_csv_values_are_exact_and_other_counters_have_columns(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with Store.create(path, HOST, []) as store:
        series = store.begin(facts())
        store.add(series, [Trial(HUGE, HUGE - 1, counts={"instructions": 2**63}), Trial(1, 2)])
    rows = table(path)
    assert (rows[0]["value"], rows[0]["output"]) == (str(HUGE), str(HUGE - 1))
    assert [row["count.instructions"] for row in rows] == [str(2**63), ""]


def test_csv_goes_to_stdout_and_a_time_is_a_time(tmp_path: Path) -> None:
    from quiet.noise import clock

    path = tmp_path / "s.db"
    with Store.create(path, HOST, []) as store:
        series = store.begin(facts())
        store.add(series, [Trial(5, 5, begin=clock.now())])
    done = cbench("export", str(path), "--format", "csv")
    assert done.returncode == 0
    assert done.stderr == ""
    (row,) = csv.DictReader(done.stdout.splitlines())
    assert row["time"].startswith("20")
    assert row["time"].endswith("Z")


def test_what_the_table_of_a_study_omits_is_reported(tmp_path: Path) -> None:
    data = study_stored(tmp_path / "s.db", 2, "interleaved", 2, lambda *_: 1.0)
    done = cbench("export", str(data), "--format", "csv")
    assert len(done.stdout.splitlines()) == 1 + 2 * 4
    omitted = "the units and directions of the metrics, the study's file and the outputs"
    assert done.stderr == f"cbench: note: the table omits {omitted}; {data} contains them\n"


@pytest.mark.slow
def test_each_command_of_pyperf_reads_the_file(store: Path, tmp_path: Path) -> None:
    out = as_pyperf(store)
    other = as_pyperf(stored(tmp_path / "t.db", noisy(1.1e6, 5, 12, seed=2)))
    assert "Number of run with values: 5" in pyperf("stats", out)
    assert "Number of warmup per run: 2" in pyperf("stats", out)
    assert "#" in pyperf("hist", out)
    assert "Mean +- std dev" in pyperf("show", out)
    assert "seems to be stable" in pyperf("check", out)
    assert "slower" in pyperf("compare_to", out, other)
    assert "cbench_workload" in pyperf("metadata", out)


def test_a_pyperf_run_is_a_process_and_every_value_is_exact(store: Path) -> None:
    rows = table(store)
    found = loaded(as_pyperf(store))
    (benchmark,) = found["benchmarks"]
    processes = [[int(row["value"]) for row in rows if row["process"] == str(p)] for p in range(5)]
    assert [run["values"] for run in benchmark["runs"]] == processes
    assert all(len(run["warmups"]) == 2 for run in benchmark["runs"])
    assert found["metadata"]["unit"] == "integer"
    assert found["metadata"]["cbench_unit"] == "TSC ticks"


def test_the_largest_value_is_exact_in_pyperfs_file(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[HUGE, HUGE - 1, HUGE]])
    assert loaded(as_pyperf(path))["benchmarks"][0]["runs"][0]["values"] == [HUGE, HUGE - 1, HUGE]
    pyperf("stats", path.with_suffix(".json"))


def test_ticks_are_seconds_only_where_their_rate_is_known(tmp_path: Path) -> None:
    known = {**TICKS, "hz": 2_500_000_000, "hz_from": "CPUID leaf 0x15"}
    out = as_pyperf(stored(tmp_path / "s.db", [[2_500_000, 2_500_025]], counter=known))
    metadata = loaded(out)["metadata"]
    assert metadata["unit"] == "second"
    assert (metadata["cbench_hz"], metadata["cbench_hz_from"]) == (2_500_000_000, "CPUID leaf 0x15")
    values = loaded(out)["benchmarks"][0]["runs"][0]["values"]
    assert values == [0.001, 0.00100001]
    assert [round(value * 2.5e9) for value in values] == [2_500_000, 2_500_025]
    assert "1.00 ms" in pyperf("show", out)


def test_polluted_trials_are_in_pyperfs_file_unless_unwanted(polluted: Path) -> None:
    runs = loaded(as_pyperf(polluted))["benchmarks"][0]["runs"]
    assert [len(run["values"]) for run in runs] == [4, 4, 4]
    found = loaded(as_pyperf(polluted, clean_only=True))
    assert [run["values"] for run in found["benchmarks"][0]["runs"]] == [[100, 101, 100]] * 3
    assert found["metadata"]["cbench_trials"] == "undisturbed ones only"


def test_tests_that_differ_in_cpu_counter_or_host_have_separate_names(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[5, 6]])
    stored(path, [[5, 6]], cpu=2)
    stored(path, [[7, 8]], workload="sieve")
    names = [run["metadata"]["name"] for run in loaded(as_pyperf(path))["benchmarks"]]
    assert names == ["hash n=1000 CPU 1", "hash n=1000 CPU 2", "sieve n=1000"]
    stored(path, [[7, 8]], workload="sieve", counter=CYCLES)
    stored(path, [[9, 9]], workload="memory")
    stored(path, [[9, 9]], workload="memory", host={**HOST, "cpu": "Another CPU"})
    names = [run["metadata"]["name"] for run in loaded(as_pyperf(path))["benchmarks"]]
    assert "sieve n=1000 [cycles]" in names
    assert "memory n=1000 (run 6: Another CPU, 6.12)" in names
    pyperf("show", path.with_suffix(".json"))


def test_runs_of_one_test_on_one_host_are_one_benchmark(store: Path) -> None:
    stored(store, noisy(1e6, 2, 12, seed=3))
    (benchmark,) = loaded(as_pyperf(store))["benchmarks"]
    assert len(benchmark["runs"]) == 7


def test_parquet_without_pyarrow_is_reported_in_one_line_with_the_remedy(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # what `import` then finds is nothing
    with pytest.raises(UsageError) as caught:
        export(ExportOptions(str(store), "parquet", str(tmp_path / "x")))
    assert str(caught.value) == (
        "--format parquet needs pyarrow: pip install 'quiet-cbench[parquet]', or use --format csv"
    )
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_parquet_has_the_rows_of_csv_with_exact_values_where_pyarrow_is_installed(tmp_path: Path) -> None:
    path = stored(tmp_path / "s.db", [[HUGE, 5]])
    command = ["export", str(path), "--format", "parquet", "-o", str(tmp_path / "x.parquet")]
    done = cbench(*command)
    if importlib.util.find_spec("pyarrow") is None:
        assert error_line(done).startswith("--format parquet needs pyarrow")
        return
    assert done.returncode == 0
    read = importlib.import_module("pyarrow.parquet").read_table(tmp_path / "x.parquet").to_pylist()
    assert [row["value"] for row in read] == [HUGE, 5]
    assert [str(row["position"]) for row in read] == [row["position"] for row in table(path)]


def wrong(message: str, *arguments: str | None, clean_only: bool = False) -> None:
    data, kind, output = arguments
    with pytest.raises(QuietError) as caught:
        export(ExportOptions(str(data), str(kind), output, clean_only))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_wrong_exports_are_reported_in_one_line(store: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty.db"
    Store.create(empty, HOST, []).close()
    wrong("--format xml: use csv, parquet, pyperf", str(store), "xml", None)
    wrong("no such file", str(tmp_path / "none"), "csv", None)
    wrong("contains no trials", str(empty), "csv", None)
    wrong("is read as input, and would be overwritten; choose another name", str(store), "csv", str(store))
    wrong("no directory", str(store), "csv", str(tmp_path / "none" / "x"))
    wrong("needs --output FILE", str(store), "parquet", None)
    wrong("unknown format; cbench reads ", __file__, "csv", None)


def test_values_that_pyperf_cannot_hold_are_reported_in_one_line(polluted: Path, tmp_path: Path) -> None:
    wrong("a trial of 0 TSC ticks", str(stored(tmp_path / "z.db", [[0, 1]])), "pyperf", None)
    all_polluted = tmp_path / "a.db"
    with Store.create(all_polluted, HOST, []) as store:
        store.add(store.begin(facts()), trials([5], {0: "interrupt LOC"}))
    wrong("no undisturbed trial", str(all_polluted), "pyperf", None, clean_only=True)


def test_a_full_disk_leaves_no_half_file(store: Path, tmp_path: Path) -> None:
    done = cbench("export", str(store), "--format", "csv", "-o", "/dev/full")
    assert done.returncode == 2
    assert error_line(done) == "--output /dev/full: No space left on device"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.db"]


@pytest.mark.slow
def test_json_reports_the_written_file(store: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "x.csv")
    done = cbench("export", str(store), "--format", "csv", "-o", out, "--json")
    assert json.loads(done.stdout) == {"format": "csv", "output": out, "series": 5, "trials": 60}
    done = cbench("export", str(store), "--format", "csv", "--json")
    assert error_line(done).startswith("--json needs --output FILE")


def test_an_existing_file_is_replaced_as_a_whole(store: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.csv"
    out.write_text("old\n" * 10_000)
    export(ExportOptions(str(store), "csv", str(out)))
    assert len(out.read_text().splitlines()) == 61


@pytest.mark.parametrize("kind", ["csv", "pyperf"])
def test_a_store_is_never_exported_over(kind: str, store: Path, tmp_path: Path) -> None:
    other = stored(tmp_path / "other.db", [[5, 6]])
    (tmp_path / "link").symlink_to(other)
    before = other.read_bytes()
    for output in (other, tmp_path / "link"):
        line = "is a store (an SQLite file), which would be overwritten; choose another name"
        wrong(line, str(store), kind, str(output))
    assert other.read_bytes() == before
    assert (tmp_path / "link").is_symlink()


def test_the_commands_are_in_the_application() -> None:
    assert {"export", "compare"} <= {command.name for command in app.registered_commands}


def test_a_usage_error_is_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        export(ExportOptions(str(tmp_path), "csv", None))


@pytest.mark.slow
def test_a_full_stdout_is_named(store: Path) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        for command in ("export", str(store), "--format", "csv"), ("compare", str(store), str(store)):
            done = subprocess.run(
                [sys.executable, "-m", "cbench", *command], stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (2, "cbench: error: stdout: No space left on device\n")
