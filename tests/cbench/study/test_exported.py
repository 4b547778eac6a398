"""A study's trials as files for others: every row and value, and the analysis of the file is that of the store."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from pyarrow import parquet

from cbench.compare.pairs import load
from cbench.export.export import ExportOptions, ExportResult, export
from cbench.export.sources import STUDY, STUDY_OMITTED
from cbench.order import analyze
from cbench.order.analyze import OrderOptions
from cbench.study.store import StudyStore
from quiet.errors import UsageError
from tests.cbench.study.running import order, study, written
from tests.cbench.study.storing import stored


def value(test: int, position: int, _before: int | None, draw: random.Random) -> float | None:
    return None if test == 1 and position == 0 else draw.gauss(100 + test, 1)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return stored(tmp_path / "study.db", 3, "interleaved", 12, value)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_every_trial_is_a_row_and_values_are_exact(kind: str, data: Path) -> None:
    out = data.with_name(f"out.{kind}")
    assert export(ExportOptions(str(data), kind, str(out))) == ExportResult(kind, str(out), None, 72, STUDY_OMITTED)
    if kind == "csv":
        with open(out, newline="") as file:
            read = [{name: each or None for name, each in row.items()} for row in csv.DictReader(file)]
    else:
        read = [{name: each if each != "" else None for name, each in row.items()} for row in rows_of(out)]
    with StudyStore.open(data) as store:
        values = {(run, position): number for run, position, _, number in store.values()}
        trials = store.trials()
    assert tuple(read[0]) == tuple(STUDY)
    assert len(read) == len(trials) == 72
    assert any(each["failure"] for each in read)
    for row, (run, position, test, failure, begun, ended) in zip(read, trials, strict=True):
        assert (row["test"], row["failure"], row["order"]) == ("abc"[test], failure, ("fixed", "random")[run % 2])
        assert [int(str(row[name])) for name in ("run", "position", "begun_ns", "ended_ns")] == [
            *(run, position, begun, ended)
        ]
        assert (None if row["value"] is None else float(str(row["value"]))) == values.get((run, position))


def rows_of(path: Path) -> list[dict[str, object]]:
    found: list[dict[str, object]] = parquet.read_table(path).to_pylist()
    return found


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_exported_file_is_analyzed_like_the_store(kind: str, data: Path) -> None:
    out = data.with_name(f"out.{kind}")
    export(ExportOptions(str(data), kind, str(out)))
    store, file = (analyze.analyzed(OrderOptions(str(each))) for each in (data, out))
    assert [test.p for test in file.tests.values()] == [test.p for test in store.tests.values()]
    assert file.verdict[:-1] == store.verdict[:-1]
    assert (file.verdict[-1], store.verdict[-1]) == (
        "beware: 3 of 72 results are missing",
        "beware: 3 of 72 trials failed",
    )


def test_each_metric_has_its_rows_and_a_failed_trial_has_one_for_each(tmp_path: Path) -> None:
    metrics = "".join(f"[[test.metric]]\nname = '{name}'\nread = 'regex:{name}=([0-9]+)'\n" for name in "xy")
    command = "test $CBENCH_RUN != 1 || exit 4; echo x=1 y=$CBENCH_RUN"
    written(tmp_path, study({"a": command}, "repetitions = 1") + metrics)
    assert order("run", "s.toml", folder=tmp_path).returncode == 0
    export(ExportOptions(str(tmp_path / "s.db"), "csv", str(tmp_path / "out.csv")))
    with open(tmp_path / "out.csv", newline="") as file:
        read = [(row["metric"], row["run"], row["value"], row["failure"]) for row in csv.DictReader(file)]
    failed = "exited with 4"
    assert read == [("x", "0", "1.0", ""), ("y", "0", "0.0", ""), ("x", "1", "", failed), ("y", "1", "", failed)]


def test_options_that_do_not_apply_to_studies_are_reported_in_one_line(data: Path) -> None:
    wrong = {
        "pyperf": "the store of a study, whose orders pyperf's files cannot represent; use --format csv or parquet"
    }
    with pytest.raises(UsageError) as caught:
        export(ExportOptions(str(data), "pyperf", None))
    assert str(caught.value) == f"{data}: {wrong['pyperf']}"
    with pytest.raises(
        UsageError, match=r"^--clean-only: a study's trials are not marked clean or polluted; omit the option$"
    ):
        export(ExportOptions(str(data), "csv", None, clean_only=True))
    with pytest.raises(UsageError) as caught:
        load(str(data))
    assert str(caught.value) == f"{data}: the store of a study: `cbench order analyze {data}` compares its orders"


def test_a_study_without_a_trial_yet_has_nothing_to_export(tmp_path: Path) -> None:
    path = written(tmp_path, study({"a": "kill -9 $PPID"}))
    order("run", path, folder=tmp_path)
    with pytest.raises(UsageError, match=r"s\.db: contains no trials$"):
        export(ExportOptions(str(tmp_path / "s.db"), "csv", None))
