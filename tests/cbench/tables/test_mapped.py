"""Analysis out of core: the same result as in memory, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cbench.tables import mapped, parquet_set
from quiet import UsageError
from tests.cbench.tables.test_parquet_set import analyze, split, study


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is too large, and a batch has a few rows."""
    monkeypatch.setattr(mapped, "IN_MEMORY", 10)
    monkeypatch.setattr(mapped, "RELEASE", 50)
    monkeypatch.setattr(parquet_set, "BATCH", 16)


def texts(table: pa.Table, column: str, names: list[str]) -> pa.Table:
    """With other names of runs or metrics."""
    if column in table.column_names:
        table = table.drop_columns([column])
    return table.append_column(column, pa.array(names))


CASES = {
    "runs": study(),
    "failed trials": study(failed=5),
    "without runs": study().drop_columns(["run"]),
    "shuffled rows": study().take(np.random.default_rng(3).permutation(study().num_rows)),
    "named runs": texts(study(), "run", [f"run-{each}" for each in study().column("run").to_pylist()]),
    "runs numbered from 1 again in each order": texts(
        study(), "run", [str(n // 2) for n in study().column("run").to_pylist()]
    ),
    "metrics": texts(study(), "metric", ["time", "time", "bytes"] * (study().num_rows // 3)),
}


@pytest.mark.parametrize("table", CASES.values(), ids=CASES.keys())
def test_out_of_core_gives_the_same_result_as_in_memory(
    tmp_path: Path, table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table.drop_columns(["position"])
    parts = split(table, tmp_path / "parts", [50, 120])
    wanted = analyze(*parts)
    monkeypatch.setattr(mapped, "IN_MEMORY", 10)
    monkeypatch.setattr(mapped, "RELEASE", 50)
    monkeypatch.setattr(parquet_set, "BATCH", 16)
    assert analyze(*parts) == wanted


@pytest.mark.usefixtures("tiny")
def test_omitted_analyses_are_reported(tmp_path: Path) -> None:
    result, _ = analyze(*split(study(), tmp_path / "parts", [100]))
    assert any("without the column position" in each for each in result["design"]["warnings"])
    assert all(test["position_p"] is None for test in result["tests"].values())


@pytest.mark.usefixtures("tiny")
def test_an_error_out_of_core_names_its_file_and_row(tmp_path: Path) -> None:
    table = study()
    value = table.column("value").to_pylist()
    value[130] = float("inf")
    parts = split(table.set_column(4, "value", pa.array(value)), tmp_path / "parts", [100])
    with pytest.raises(UsageError, match=r"part-1.parquet: row 31: column value: is infinite"):
        analyze(*parts)


@pytest.mark.usefixtures("tiny")
def test_a_temporary_folder_without_room_is_reported_in_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "gone"))
    with pytest.raises(UsageError, match=r"gone: cannot store .* set TMPDIR"):
        analyze(*split(study(), tmp_path / "parts", [100]))


PROGRAM = """
import sys
from pathlib import Path
from cbench.tables import mapped
mapped.IN_MEMORY = int(sys.argv[1])
from cbench.order.analyze import OrderOptions, analyzed
analyzed(OrderOptions(sys.argv[2]))
print(next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")).split()[1])
"""
"""Not ru_maxrss, which begins with that of the process that started this one."""


def peak(folder: Path, in_memory: int) -> int:
    """The most memory of a whole process, in KiB."""
    command = [sys.executable, "-c", PROGRAM, str(in_memory), str(folder)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_out_of_core_takes_less_memory_than_in_memory(tmp_path: Path) -> None:
    draw = np.random.default_rng(1)
    tests, runs = 1000, 250
    run = np.repeat(np.arange(runs), tests)
    for number in range(16):
        rows = {
            "test": pa.array([f"{number}/{test}" for test in range(tests)] * runs),
            "order": pa.array(np.where(run % 2, "random", "fixed")),
            "run": pa.array(run),
            "value": pa.array(draw.lognormal(3, 0.1, run.size)),
        }
        pq.write_table(pa.table(rows), tmp_path / f"part-{number:02d}.parquet")
    assert peak(tmp_path, 10) < 0.7 * peak(tmp_path, 10**9)
