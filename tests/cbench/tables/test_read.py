"""Tables of trials: CSV with pyarrow and without, and Parquet; an error is one line with the place."""

from __future__ import annotations

import decimal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cbench.order.analyze import read
from cbench.stats.trials import Trials
from cbench.tables.columns import Coded, numbers_of
from tests.cbench.order.studies import HEAD, analyze, refused, write

ROWS = ["a,fixed,0,0,1.5", "b,fixed,0,1,2.5", "b,random,1,0,3.5", "a,random,1,1,4.5"]
Columns = dict[str, Any]


@pytest.fixture(params=["pyarrow", "plain"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With pyarrow, and as on a host where it is not installed."""
    if request.param == "plain":
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    return str(request.param)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.csv"


def as_rows(found: Trials) -> list[tuple[object, ...]]:
    columns: list[Any] = [
        [found.names[each] for each in found.series],
        ["random" if each else "fixed" for each in found.random],
        [None] * found.series.size if found.run is None else found.run.tolist(),
        [None] * found.series.size if found.position is None else found.position.tolist(),
        found.value.tolist(),
    ]
    return list(zip(*columns, strict=True))


WANTED = [("a", "fixed", 0, 0, 1.5), ("b", "fixed", 0, 1, 2.5), ("b", "random", 1, 0, 3.5), ("a", "random", 1, 1, 4.5)]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "written",
    [
        "\n".join(["test,order,run,position,value", *ROWS, ""]).encode(),
        "\n".join(["test,order,run,position,value", *ROWS]).encode(),
        "\r\n".join(["test,order,run,position,value", *ROWS, ""]).encode(),
        b"\xef\xbb\xbf" + "\n".join(["test,order,run,position,value", *ROWS, ""]).encode(),
        b"\xef\xbb\xbf" + "\n".join(['"test","order","run","position","value"', *ROWS, ""]).encode(),
        "\n".join(["test,order,run,position,value", '"a",fixed,"0",0,"1.5"', *ROWS[1:], ""]).encode(),
        "\n".join(["test,order,run,position,value", "", ROWS[0], "", *ROWS[1:], "", ""]).encode(),
        "\n".join(["value,x,run,test,y,order,position,x", "1.5,?,0,a,,fixed,0,", "2.5,?,0,b,,fixed,1,"]).encode()
        + b"\n3.5,?,1,b,,random,0,\n4.5,?,1,a,,random,1,\n",
        "\n".join(["test,order,run,position,value", "a,fixed,5,3,15e-1", "b,fixed,5,4,+2.5"]).encode()
        + b"\nb,random,7,3,3.50\na,random,7,4,4.5\n",
    ],
    ids=["plain", "no last newline", "CRLF", "BOM", "BOM quoted", "quoted", "empty lines", "other columns", "from 5"],
)
def test_all_supported_ways_to_write_a_csv_are_read(path: Path, written: bytes) -> None:
    path.write_bytes(written)
    found, warnings = read(path)
    assert as_rows(found) == WANTED
    assert not warnings


@pytest.mark.usefixtures("way")
def test_run_position_and_metric_may_be_absent(path: Path) -> None:
    write(path, ["a,fixed,1", "a,random,2"], "test,order,value")
    assert as_rows(read(path)[0]) == [("a", "fixed", None, None, 1.0), ("a", "random", None, None, 2.0)]
    made, _ = analyze(path)
    assert made["design"]["interleaved"] is None
    assert made["tests"]["a"]["position_p"] is made["tests"]["a"]["drift_p"] is None


@pytest.mark.slow
@pytest.mark.usefixtures("way")
def test_metrics_by_rows_and_by_columns_give_the_same(tmp_path: Path) -> None:
    wide, long = tmp_path / "wide.csv", tmp_path / "long.csv"
    write(wide, ["a,fixed,1,10", "a,random,2,20", "b,fixed,3,", "b,random,4,"], "test,order,speed,size")
    write(
        long,
        [
            "a,fixed,1,speed",
            "a,fixed,10,size",
            "a,random,2,speed",
            "a,random,20,size",
            "b,fixed,3,speed",
            "b,random,4,speed",
        ],
        "test,order,value,metric",
    )
    one, two = analyze(wide, "--value", "speed", "--value", "size", "--value", "speed")[0], analyze(long)[0]
    assert list(one["tests"]) == ["a:speed", "a:size", "b:speed"]  # b has no size at all
    assert {name: each["median_random"] for name, each in one["tests"].items()} == {
        name: each["median_random"] for name, each in two["tests"].items()
    }
    assert one["across"]["pairs"] == two["across"]["pairs"]
    refused(wide, "no column value; it has test, order, speed, size")
    refused(wide, "no column weight; it has test, order, speed, size", "--value", "weight")
    refused(wide, "--value order: contains names, not numbers", "--value", "order")
    refused(wide, "--value run: numbers the trials; name a column of results", "--value", "run")
    refused(long, "column metric: names the metric of `value` in each row; omit --value", "--value", "value")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("missing", ["", "NA", "nan", "NaN", "null", "None", "N/A"])
def test_missing_values_are_trials_that_failed(path: Path, missing: str) -> None:
    write(path, [*ROWS, f"a,fixed,2,0,{missing}", "null,fixed,2,1,1", "null,random,3,0,2"])
    found, _ = read(path)
    assert np.isnan(found.value).tolist() == [False] * 4 + [True, False, False]
    assert found.names == ("a", "b", "null")  # for names only the empty text is missing
    made, _ = analyze(path)
    assert (made["tests"]["a"]["n_fixed"], made["tests"]["a"]["failed_fixed"]) == (1, 1)


WRONG = [
    ("a,fixed,2,0,fast", "line 6: column value: 'fast' is not a number"),
    ("a,fixed,2,0,1_000", "line 6: column value: '1_000' is not a number"),
    ('a,fixed,2,0,"1,5"', "line 6: column value: '1,5' is not a number"),
    ("a,fixed,2,0,inf", "line 6: column value: is infinite"),
    ("a,fixed,2,0,-1e999", "line 6: column value: is infinite"),
    ("a,fixed,2,0,-1e151", "line 6: column value: is beyond ±1e+150, too large"),
    ("a,Fixed,2,0,1", "line 6: column order: 'Fixed': must be fixed, random or williams"),
    ("a,,2,0,1", "line 6: column order: is empty"),
    (",fixed,2,0,1", "line 6: column test: is empty"),
    ("a,fixed,,0,1", "line 6: column run: is empty"),
    ("a,fixed,2,,1", "line 6: column position: is not a whole number from 0 to 2147483646"),
    ("a,fixed,2,1.5,1", "line 6: column position: is not a whole number from 0 to 2147483646"),
    ("a,fixed,2,-1,1", "line 6: column position: is not a whole number from 0 to 2147483646"),
    ("a,fixed,2,1e100,1", "line 6: column position: is not a whole number from 0 to 2147483646"),
    ("a,fixed,2,first,1", "line 6: column position: 'first' is not a number"),
    ("a,fixed,2,0", "line 6: 4 columns, not 5"),
    ("a,fixed,2,0,1,1", "line 6: 6 columns, not 5"),
    ("\n\na,fixed,2,0,fast", "line 8: column value: 'fast' is not a number"),
    ('"a\nb",fixed,2,0,1\na,fixed,2,0,inf', "line 8: column value: is infinite"),
]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("row", "message"), WRONG)
def test_a_wrong_row_is_named_by_its_line(path: Path, row: str, message: str) -> None:
    refused(write(path, [*ROWS, row]), f"study.csv: {message}")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "study.csv: empty file"),
        (b"\n", "no column test, order, value; it has none"),
        (b"test,order,run,position,value\n", "study.csv: contains no trials"),
        (b"test,order,value\n\n\n", "study.csv: contains no trials"),
        (
            b"test;order;value\na;fixed;1\n",
            "no column test, order, value; it has test;order;value: separated by semicolons; export it with "
            "commas as separators and points as decimal signs",
        ),
        (b"test\torder\tvalue\na\tfixed\t1\n", "value: separated by tabs; export it with commas as separators"),
        (b"test,order\na,fixed\n", "no column value; it has test, order"),
        (b"test,order,value,test\na,fixed,1,b\n", "column test appears twice"),
        (b"test,order,value,run,run\na,fixed,1,1,1\n", "column run appears twice"),
        (b"test,order,value\n" + b"a,fixed,1\n" * 9999 + b"\xff\xfe,fixed,1\n", "or later: not UTF-8 text"),
        (b"\xff\xfet\x00e\x00", "not a cbench store, a Parquet file or UTF-8 text"),
        (b"\x1f\x8b\x08\x00\x00\xfe", "damaged gzip file"),
        (
            b"PAR1 is how a Parquet file begins",
            "no column test, order, value; it has PAR1 is how a Parquet file begins",
        ),
    ],
)
def test_a_wrong_file_is_reported_in_one_line(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    refused(path, message)


@pytest.mark.usefixtures("way")
def test_a_duplicate_row_is_named_with_both_lines(path: Path) -> None:
    said = "line 7: column position: run, position, test and metric are the same as in line 4"
    refused(write(path, [*ROWS, "", ROWS[2]]), said)
    refused(write(path, [f"{ROWS[2]},{metric}" for metric in "mnm"], f"{HEAD},metric"), "are the same as in line 2")
    wide = "test,order,run,position,speed,size"
    refused(write(path, [f"{ROWS[2]},1", f"{ROWS[2]},2"], wide), "line 3: column position", "--value", "speed")
    rows = [row.split(",")[:2] + row.split(",")[4:] for row in (*ROWS, ROWS[2])]  # without run and position
    assert analyze(write(path, rows, "test,order,value"))[0]["tests"]["b"]["n_random"] == 2


def test_a_duplicate_row_is_found_where_run_and_position_are_sparse(path: Path) -> None:
    rows = [f"a,fixed,{run},{run * 1000},1" for run in range(9)]
    assert len(read(write(path, rows))[0].value) == 9
    refused(
        write(path, [*rows, rows[4]]), "line 11: column position: run, position, test and metric are the same as in"
    )


def test_a_missing_file_and_a_folder_are_reported(tmp_path: Path) -> None:
    refused(tmp_path / "none.csv", "none.csv: no such file")
    refused(tmp_path / "none.parquet", "none.parquet: no such file")
    refused(tmp_path, "is a directory without Parquet files; name a file")


@pytest.mark.usefixtures("way")
def test_runs_with_the_same_number_in_both_orders_are_two_runs(path: Path) -> None:
    rows = [f"a,{order},{run},0,{run}" for order in ("fixed", "random") for run in range(8)]
    made, _ = analyze(write(path, rows))
    assert made["design"]["runs_fixed"] == made["design"]["runs_random"] == 8
    assert made["design"]["interleaved"] is False


@pytest.mark.usefixtures("way")
def test_runs_with_names_are_used_in_row_order(path: Path) -> None:
    rows = [f"a,{'random' if run % 2 else 'fixed'},night-{run % 7}-{run},0,{run}" for run in range(16)]
    made, _ = analyze(write(path, rows))
    assert made["design"]["stretches"] == 16
    shuffled = [f"{test},fixed,night {run},{run},1" for test in "ab" for run in (2, 0, 1)]
    made, _ = analyze(write(path, shuffled))
    assert "the order of the runs is unknown" in made["design"]["warnings"][0]


@pytest.mark.usefixtures("way")
def test_two_tests_at_the_same_position_leave_the_predecessor_unknown(path: Path) -> None:
    rows = [f"{test},random,{run},{place},{run}" for run in range(6) for place, test in enumerate("abc")]
    assert "several tests" not in analyze(write(path, rows))[0]["design"]["warnings"][0]
    rows.append("c,random,3,1,5")
    made, _ = analyze(write(path, rows))
    assert "several tests have the same position" in made["design"]["warnings"][0]
    assert made["tests"]["a"]["predecessor_p"] is None


# Parquet

TYPES: list[tuple[str, Callable[[Columns], Columns]]] = [
    ("as it is", lambda columns: columns),
    ("dictionaries", lambda c: c | {n: pa.array(c[n]).dictionary_encode() for n in ("test", "order")}),
    ("large text", lambda c: c | {n: pa.array(c[n], pa.large_string()) for n in ("test", "order")}),
    (
        "small numbers",
        lambda c: c | {"value": pa.array(c["value"], pa.float32()), "run": pa.array(c["run"], pa.int8())},
    ),
    ("texts", lambda c: c | {"value": [f"{each}" for each in c["value"]], "run": ["5", "5", "7", "7"]}),
    ("decimals", lambda c: c | {"value": [decimal.Decimal(f"{each}") for each in c["value"]]}),
    ("unsigned", lambda c: c | {"position": pa.array(c["position"], pa.uint64())}),
    ("floats", lambda c: c | {"position": [float(each) for each in c["position"]], "run": [1.5, 1.5, 2.25, 2.25]}),
    ("more", lambda c: c | {"note": [None, "x", "y", "z"], "list": [[1], [2], [], None]}),
]


def columns() -> Columns:
    return {
        "test": ["a", "b", "b", "a"],
        "order": ["fixed", "fixed", "random", "random"],
        "run": [0, 0, 1, 1],
        "position": [0, 1, 0, 1],
        "value": [1.5, 2.5, 3.5, 4.5],
    }


@pytest.mark.parametrize("change", [change for _, change in TYPES], ids=[name for name, _ in TYPES])
def test_columns_of_many_types_are_read(tmp_path: Path, change: Callable[[Columns], Columns]) -> None:
    for size in (100, 2):  # one row group, and two with dictionaries of their own
        pq.write_table(pa.table(change(columns())), tmp_path / "study.pq", row_group_size=size)
        found, warnings = read(tmp_path / "study.pq")
        assert as_rows(found) == WANTED
        assert not warnings


def test_runs_of_several_hosts_may_have_names_in_parquet(tmp_path: Path) -> None:
    names = [f"run-{each}" for each in columns()["run"]]
    table = {name: [*column, *column] for name, column in (columns() | {"run": names}).items()}
    pq.write_table(pa.table(table | {"host": ["one"] * len(names) + ["two"] * len(names)}), tmp_path / "s.parquet")
    found, _ = read(tmp_path / "s.parquet")
    assert found.run is not None
    half = len(names)
    assert found.run[half:].tolist() == (found.run[:half] + len(set(names))).tolist()


def test_in_parquet_null_and_nan_are_missing(tmp_path: Path) -> None:
    pq.write_table(pa.table(columns() | {"value": [None, float("nan"), 3.5, 4.5]}), tmp_path / "a.parquet")
    assert np.isnan(read(tmp_path / "a.parquet")[0].value).tolist() == [True, True, False, False]
    pq.write_table(pa.table(columns() | {"value": pa.array([None, 2, 3, 4], pa.int64())}), tmp_path / "a.parquet")
    assert np.isnan(read(tmp_path / "a.parquet")[0].value).tolist() == [True, False, False, False]
    pq.write_table(pa.table(columns() | {"value": pa.nulls(4)}), tmp_path / "a.parquet")
    assert np.isnan(read(tmp_path / "a.parquet")[0].value).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"value": ["1", "2", "fast", "3"]}, "row 3: column value: 'fast' is not a number"),
        ({"value": [1.0, 2.0, float("inf"), 3.0]}, "row 3: column value: is infinite"),
        ({"value": [[1.0], [2.0], [3.0], [4.0]]}, "column value: contains neither names nor numbers"),
        ({"value": pa.array([1, 2, 3, 4], pa.timestamp("s"))}, "column value: contains no numbers"),
        ({"test": ["a", None, "b", "b"]}, "row 2: column test: is empty"),
        ({"order": [0, 0, 1, 1]}, "row 1: column order: '0': must be fixed, random or williams"),
        ({"order": [True, False, True, True]}, "row 1: column order: 'true': must be fixed, random or williams"),
        ({"run": [0, None, 1, 1]}, "row 2: column run: is empty"),
        ({"position": [0, None, 1, 1]}, "row 2: column position: is not a whole number from 0 to 2147483646"),
        ({"test": [{"a": 1}] * 4}, "column test: contains neither names nor numbers"),
    ],
)
def test_a_wrong_column_is_named_with_its_row(tmp_path: Path, change: Columns, message: str) -> None:
    pq.write_table(pa.table(columns() | change), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", message)


def test_a_duplicate_row_in_parquet_is_reported(tmp_path: Path) -> None:
    twice = {name: [*each, each[1]] for name, each in columns().items()}
    pq.write_table(pa.table(twice), tmp_path / "a.parquet")
    refused(tmp_path / "a.parquet", "row 5: column position: run, position, test and metric are the same as in row 2")


def test_a_damaged_or_foreign_parquet_file_is_reported_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_text("test,order,value\na,fixed,1\n")
    refused(path, "a.parquet: not a Parquet file, or a damaged one")
    path.write_bytes(b"")
    refused(path, "a.parquet: empty file")
    pq.write_table(pa.table(columns()), path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "a.parquet: not a Parquet file, or a damaged one")
    path.write_bytes(whole[:20] + b"\xff" * 60 + whole[80:])
    refused(path, "a.parquet: ")
    pq.write_table(pa.table({"test": ["a"], "order": ["fixed"]}), path)
    refused(path, "no column value; it has test, order")
    pq.write_table(pa.table({name: each[:0] for name, each in columns().items()}), path)
    refused(path, "a.parquet: ")


def test_without_pyarrow_parquet_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table(columns()), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(path, "reading Parquet needs pyarrow: pip install 'quiet-cbench[order]', or give a CSV")


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_pandas_and_scipy_are_not_loaded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.{suffix}"
    write(path, ROWS) if suffix == "csv" else pq.write_table(pa.table(columns()), path)
    program = (
        "import sys; from cbench.order.analyze import OrderOptions, analyzed; "
        f"analyzed(OrderOptions({str(path)!r})); "
        "print({'pandas', 'scipy', 'matplotlib', 'pyarrow.dataset', 'rich.table'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_unused_names_of_a_dictionary_need_not_be_numbers() -> None:
    column = Coded(np.array([0, 1, -1], dtype=np.int32), ("1", "2", "x"))
    assert numbers_of("value", column).tolist()[:2] == [1, 2]
