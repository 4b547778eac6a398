"""Tables in several Parquet files: the same result as of one file, and errors with their file and row."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from cbench.cli import app
from cbench.order.analyze import OrderOptions, reported
from quiet import UsageError

RUNS, TESTS = 40, 6


def study(failed: int = 0) -> pa.Table:
    """Interleaved runs of six tests; one of them is slower in random order. `failed`: that many without a value."""
    draw = np.random.default_rng(7)
    rows: dict[str, list[Any]] = {name: [] for name in ("test", "order", "run", "position", "value")}
    for run in range(RUNS):
        random = run % 2 == 1
        places = draw.permutation(TESTS) if random else np.arange(TESTS)
        for position, test in enumerate(places.tolist()):
            shift = 3.0 if random and test == 2 else 0.0
            rows["test"].append(f"test-{test}")
            rows["order"].append("random" if random else "fixed")
            rows["run"].append(run)
            rows["position"].append(position)
            rows["value"].append(round(100 + 10 * test + shift + draw.normal(), 2))
    for row in range(failed):
        rows["value"][7 * row] = None
    return pa.table(rows)


def split(table: pa.Table, folder: Path, ends: list[int]) -> list[Path]:
    folder.mkdir()
    bounds = itertools.pairwise([0, *ends, table.num_rows])
    paths = []
    for number, (begin, end) in enumerate(bounds):
        paths.append(folder / f"part-{number}.parquet")
        pq.write_table(table.slice(begin, end - begin), paths[-1])
    return paths


def analyze(*paths: Path, values: Sequence[str] = ()) -> tuple[dict[str, Any], int]:
    done = CliRunner().invoke(
        app, ["order", "analyze", *map(str, paths), "--json", *(f"--value={each}" for each in values)]
    )
    if isinstance(done.exception, UsageError):
        raise done.exception
    return json.loads(done.stdout), done.exit_code


@pytest.mark.parametrize("failed", [0, 5])
def test_a_table_in_several_files_gives_the_result_of_one_file(tmp_path: Path, failed: int) -> None:
    table = study(failed)
    whole = tmp_path / "whole.parquet"
    pq.write_table(table, whole)
    parts = split(table, tmp_path / "parts", [50, 51, 120])
    wanted = analyze(whole)
    assert analyze(*parts) == wanted
    assert analyze(tmp_path / "parts") == wanted
    assert wanted[1] == 1


def test_an_error_names_its_file_and_row(tmp_path: Path) -> None:
    table = study()
    order = table.column("order").to_pylist()
    order[60] = "alphabetical"
    parts = split(table.set_column(1, "order", pa.array(order)), tmp_path / "parts", [50, 100])
    with pytest.raises(UsageError, match=r"part-1.parquet: row 11: column order: 'alphabetical': must be fixed"):
        analyze(*parts)


def test_a_trial_in_two_files_is_reported_with_both(tmp_path: Path) -> None:
    table = study()
    parts = split(pa.concat_tables([table, table.slice(3, 1)]), tmp_path / "parts", [240])
    with pytest.raises(UsageError, match=r"part-1.parquet: row 1: column position: .* in row 4 of .*part-0.parquet"):
        analyze(*parts)


def test_files_with_different_columns_are_rejected(tmp_path: Path) -> None:
    parts = split(study(), tmp_path / "parts", [100])
    pq.write_table(study().drop_columns(["run"]), parts[1])
    with pytest.raises(UsageError, match=r"part-1.parquet: no column run, which .*part-0.parquet has"):
        analyze(*parts)
    renamed = study().rename_columns([{"value": "ns"}.get(name, name) for name in study().column_names])
    parts = split(renamed, tmp_path / "renamed", [100])
    pq.write_table(renamed.drop_columns(["ns"]), parts[1])
    with pytest.raises(UsageError, match=r"part-1.parquet: no column ns, which .*part-0.parquet has"):
        analyze(*parts, values=["ns"])


@pytest.mark.slow
def test_a_page_is_written_from_several_files(tmp_path: Path) -> None:
    parts = split(study(), tmp_path / "parts", [100])
    reported(OrderOptions(str(parts[0]), more=[str(each) for each in parts[1:]]), str(tmp_path / "page.html"))
    assert "<title>" in (tmp_path / "page.html").read_text()


def test_a_file_that_is_given_twice_is_rejected(tmp_path: Path) -> None:
    parts = split(study(), tmp_path / "parts", [100])
    with pytest.raises(UsageError, match=r"part-0.parquet: is given twice; give each file once"):
        analyze(tmp_path / "parts", parts[0])


def test_a_folder_without_parquet_files_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a directory without Parquet files"):
        analyze(tmp_path)
