"""`cbench compare`: its options, its output, and its two kinds of files."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cbench.compare.result import compare, share
from quiet.errors import UsageError
from tests.cbench.compare.comparing import answer, exported, one, rows
from tests.cbench.running import cbench, error_line
from tests.cbench.store.storing import noisy, stored


def test_a_file_against_itself_is_not_a_difference(a: Path) -> None:
    assert one(a, a)["ratio"] == 1


@pytest.mark.slow
def test_the_table_names_the_spread_of_the_processes(a: Path, b: Path) -> None:
    assert " spread between processes (highest - lowest) " in cbench("compare", str(a), str(b)).stdout


def test_the_same_data_as_pyperfs_file_give_the_same_answer(a: Path, b: Path) -> None:
    direct = one(a, b)
    file = {"new": str(b.with_suffix(".json"))}
    assert one(exported(a), exported(b)) == direct | file
    assert one(a, exported(b)) == direct | file
    assert direct["measured_first"] == "A"


@pytest.mark.slow
def test_pyperfs_own_files_are_compared(tmp_path: Path) -> None:
    files = []
    for name, statement in (("x", "sum(range(100))"), ("y", "sum(range(20_000))")):
        files.append(tmp_path / f"{name}.json")
        run = [sys.executable, "-m", "pyperf", "timeit", "-q", "-p4", "-n3", "-w1", "-l20", "--name=sum"]
        subprocess.run([*run, f"--output={files[-1]}", statement], check=True, capture_output=True)
    row = one(*files)
    assert (row["test"], row["unit"], row["by"]) == ("sum", "second", "process")
    assert row["a"]["processes"] == 4
    assert row["outcome"] == "higher"
    assert row["ratio"] > 2


@pytest.mark.slow
def test_the_outcomes_of_many_tests_are_counted_and_corrected_for_their_number(tmp_path: Path) -> None:
    a, b = tmp_path / "a.db", tmp_path / "b.db"
    for number, scale in enumerate((1e6, 1.0002e6, 1.2e6)):
        stored(a, noisy(1e6, 8, 20, seed=number), params={"n": number})
        stored(b, noisy(scale, 8, 20, seed=number + 50), params={"n": number})
    found = answer(a, b)
    assert found["summary"]["comparisons"] == 3
    assert found["summary"]["correction"] == "holm"
    assert found["summary"]["outcomes"]["higher"] == 1
    assert [row["p_holm"] >= row["p"] for row in rows(a, b)] == [True] * 3
    assert rows(a, b)[2]["p_holm"] == pytest.approx(3 * rows(a, b)[2]["p"])
    done = cbench("compare", str(a), str(b))
    assert "3 tests: 1 slower, " in done.stdout
    assert "; alpha 5 % over all tests (Holm)" in done.stdout


@pytest.mark.parametrize(("text", "value"), [("1%", 0.01), ("0.01", 0.01), ("2.5 %", 0.025), (" 5% ", 0.05)])
def test_a_threshold_is_a_share(text: str, value: float) -> None:
    assert share(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "%", "0", "-1%", "100%", "1", "nan", "inf", "much"])
def test_anything_but_a_share_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="must be above 0 and below 1, such as"):
        share(text)


@pytest.mark.parametrize("level", [0.0, 49.0, 100.0, -5.0, float("nan"), float("inf")])
def test_a_level_is_a_percentage(level: float) -> None:
    with pytest.raises(UsageError, match="--level"):
        compare("a.db", "b.db", level=level)


def test_an_unknown_headline_is_refused() -> None:
    with pytest.raises(UsageError, match="--headline best: use auto, median, floor, min, mean"):
        compare("a.db", "b.db", headline="best")


def test_the_command_prints_a_table_and_the_verdict_of_a_single_test(a: Path, b: Path) -> None:
    done = cbench("compare", str(a), str(b), "--threshold", "0.1%")
    assert done.returncode == 1
    assert done.stderr == ""
    for text in ("hash n=1000 (TSC ticks)", "processes", "Mann-Whitney U", "B is slower: +"):
        assert text in done.stdout


def test_the_command_prints_one_json_object(a: Path, b: Path) -> None:
    done = cbench("compare", str(a), str(b), "--json", "--level", "99")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert found["level"] == pytest.approx(0.99)
    assert found["comparisons"][0]["interval_level"] >= 0.99
    assert found["comparisons"][0]["a"]["processes"] == 8


def test_the_command_reports_an_error_in_one_line(a: Path, tmp_path: Path) -> None:
    done = cbench("compare", str(a), str(tmp_path / "none"))
    assert done.returncode == 2
    assert error_line(done) == f"{tmp_path}/none: no such file"
