"""`cbench screen analyze` and `report` reject unusable data in one clear line, never with a traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cbench.screen.data.read_table import read
from cbench.screen.data.roles import Chosen
from quiet.errors import UsageError
from tests.cbench import running
from tests.cbench.screen import screens
from tests.cbench.screen.screens import table

GOOD = "a,b,iteration,value\n"
MANY = "name the factors with --factor, or responses with --value"
EXPORT = "export it with commas as separators and points as decimal signs"
TWICE = "a treatment may appear only once per iteration, but this one already appears in line 2"


def cbench(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return running.cbench("screen", *map(str, arguments))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty file; name a file with content"),
        (GOOD, "contains no trials"),
        ("a,b\n1,2\n", "no column value; it has a, b; name the response columns with --value"),
        ("a;b;value\nx;p;1.5\n", f"separated by semicolons; {EXPORT}"),
        ("a;b;value\nx;p;1,5\n", f"separated by semicolons; {EXPORT}"),
        ("a\tb\tvalue\nx\tp\t1\n", f"separated by tabs; {EXPORT}"),
        ("iteration,value\n0,1\n", "no factor column; it has iteration, value"),
        (GOOD + "0,0,0,1\n0,1,0,inf\n", "line 3: column value: is infinite"),
        (GOOD + "0,0,0,1_000\n", "line 2: column value: '1_000' is not a number"),
        (GOOD + "0,0,0,1\n0,1,0,x\n", "line 3: column value: 'x' is not a number"),
        (GOOD + "0,0,0,1\n0,1,0.5,2\n", "line 3: column iteration: is not a whole number below 2^31 in magnitude"),
        (GOOD + "0,0,0,1\n0,,0,2\n", "line 3: column b: is empty"),
        (GOOD + "0,0,0,1\n0,0,1\n", "line 3: 3 columns, not 4"),
        (GOOD + "0,0,0,1\n1,0,0,1\n0,0,0,2\n", "line 4: column iteration: " + TWICE),
        ("a,a,iteration,value\n", "column a appears twice"),
        ("\0\x80\xff", "not a cbench store, a Parquet file or UTF-8 text"),
        (GOOD + "".join(f"{n},0,0,1\n" for n in range(60)), "column a: 60 levels: too many for a factor; " + MANY),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_used_is_reported_with_its_line_and_column(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError) as error:
        read(path)
    assert str(error.value) == f"{path}: {said}"


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        (Chosen(factors=("x",)), "{path}: --factor x: no column x; it has a, b, iteration, value"),
        (Chosen(values=("x",)), "{path}: --value x: no column x; it has a, b, iteration, value"),
        (Chosen(factors=("value",)), "--factor value: is also a response; omit it from --factor or --value"),
        (Chosen(hard=("x",)), "--hard x: not a factor; the factors are a, b"),
    ],
)
def test_columns_that_do_not_exist_are_reported(tmp_path: Path, chosen: Chosen, said: str) -> None:
    path = tmp_path / "data.csv"
    path.write_text(GOOD + "0,0,0,1\n")
    with pytest.raises(UsageError) as error:
        read(path, chosen)
    assert str(error.value) == said.format(path=path)


def test_levels_are_in_their_natural_order(tmp_path: Path) -> None:
    rows = [{"n": n, "f": f, "iteration": 0, "value": 1} for n in ("10", "9", "-1") for f in ("b", "a")]
    factors = read(table(tmp_path / "data.csv", rows)).factors
    assert [factor.levels for factor in factors] == [("-1", "9", "10"), ("a", "b")]


def test_rows_are_sorted_chronologically(tmp_path: Path) -> None:
    rows = [
        {"a": a, "iteration": i, "position": (a + i) % 2, "batch": b, "value": 100 * b + 10 * i + (a + i) % 2}
        for a in (0, 1)
        for i in (2, 0, 1)
        for b in (1, 0)
    ]
    (series,) = read(table(tmp_path / "data.csv", rows)).series
    assert series.value.tolist() == sorted(series.value.tolist())
    assert series.sequence.tolist() == list(range(12))


def test_long_and_broad_tables_are_the_same_screen(tmp_path: Path) -> None:
    broad = screens.planted(3)
    long = [
        {key: row[key] for key in ("a", "b", "c", "iteration", "position")} | {"response": name, "value": row[name]}
        for row in broad
        for name in ("wall", "other")
    ]
    first = read(table(tmp_path / "broad.csv", broad), screens.BOTH)
    second = read(table(tmp_path / "long.csv", long))
    assert [each.name for each in first.series] == [each.name for each in second.series] == ["wall", "other"]
    for one, other in zip(first.series, second.series, strict=True):
        assert one.value.tolist() == other.value.tolist()
        assert one.treatment.tolist() == other.treatment.tolist()


def test_parquet_and_csv_give_the_same_result(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = screens.planted(3)
    path = tmp_path / "data.parquet"
    parquet.write_table(arrow.Table.from_pylist(rows), path)
    first, second = read(path, screens.BOTH), read(table(tmp_path / "data.csv", rows), screens.BOTH)
    assert first.factors == second.factors
    assert first.treatments == second.treatments
    for one, other in zip(first.series, second.series, strict=True):
        assert one.value.tolist() == other.value.tolist()
        assert one.iteration.tolist() == other.iteration.tolist()


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    return table(tmp_path / "planted.csv", screens.planted(25))


ASKED = ("--value", "wall", "--value", "other", "--subsamples", "20")


@pytest.mark.slow
def test_the_exit_code_says_whether_some_factor_matters(planted: Path) -> None:
    done = cbench("analyze", planted, *ASKED, "--json")
    made: dict[str, Any] = json.loads(done.stdout)
    assert (done.returncode, made["factors_matter"], done.stderr) == (1, True, "")
    none = cbench("analyze", planted, "--factor", "b", "--factor", "a", "--factor", "c", "--value", "other", "--json")
    assert (none.returncode, json.loads(none.stdout)["factors_matter"]) == (0, False)


@pytest.mark.slow
def test_the_tables_begin_with_the_verdict(planted: Path) -> None:
    done = cbench("analyze", planted, *ASKED)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("effects that matter: ")
    assert lines[1].startswith("columns: factor: a, b, c; ")
    assert any(line.startswith("practical significance: wall: ") for line in lines)
    assert "wall: 200 values, 0 failed" in lines
    assert any("a=0 b=0 c=1" in line for line in lines)


@pytest.mark.slow
def test_data_without_an_answer_end_with_2_after_the_tables(tmp_path: Path) -> None:
    path = table(tmp_path / "alike.csv", screens.two_by_three(2))
    done = cbench("analyze", path)
    assert done.returncode == 2
    assert done.stdout.startswith("nothing could be tested: ")
    assert f"cbench: error: {path}: nothing could be tested" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_report_is_written_whole_and_never_over_what_is_not_a_page(planted: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = cbench("report", planted, "-o", page, *ASKED)
    assert done.returncode == 1
    assert done.stderr.startswith(f"cbench: {page} written: effects that matter: ")
    assert page.read_text().startswith("<!doctype html>")
    for target, said in ((planted, "is the data file itself"), (tmp_path / "no" / "x.html", "no directory")):
        refused = cbench("report", planted, "-o", target, *ASKED)
        assert refused.returncode == 2
        assert said in refused.stderr
    assert planted.read_text().startswith("a,b,c,iteration")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--alpha", "1"), "--alpha 1: must be at least 1e-9 and below 1"),
        (("--alpha", "1e-320"), "at least 1e-9"),
        (("--ci-level", "100"), "--ci-level 100: must be a level such as 95"),
        (("--subsamples", "-1"), "--subsamples -1: must be from 0"),
        (("--seed", "-1"), "--seed -1: must be from 0"),
        (("--abridgment", "x"), "--abridgment x: unknown; the data define none"),
    ],
)
def test_options_without_effect_are_reported(planted: Path, options: tuple[str, str], said: str) -> None:
    done = cbench("analyze", planted, "--value", "wall", "--value", "other", *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["missing.csv", "."])
def test_a_missing_file_is_reported(tmp_path: Path, name: str) -> None:
    done = cbench("analyze", tmp_path / name)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "no such file" in done.stderr or "is a directory" in done.stderr


def test_without_numpy_one_line_says_what_to_install(planted: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules['numpy'] = None\n"
        f"sys.argv = ['cbench', 'screen', 'analyze', {str(planted)!r}]\n"
        "import cbench.__main__\ncbench.__main__.main()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert (
        done.stderr == "cbench: error: cbench screen analyze and report need numpy: pip install 'quiet-cbench[order]'\n"
    )
