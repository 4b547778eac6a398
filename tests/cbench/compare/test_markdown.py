"""The summary of `cbench compare` for a pull request."""

from __future__ import annotations

from pathlib import Path

import pytest

from cbench.compare.markdown import summary
from cbench.compare.result import compare
from tests.cbench.compare.suites import names, suite
from tests.cbench.running import cbench, error_line


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return suite(tmp_path / "old.json", names(4), seed=1)


def test_regressions_come_first_and_the_rest_is_folded(old: Path, tmp_path: Path) -> None:
    new = suite(tmp_path / "new.json", names(4) | {"test_a": 0.9, "test_c": 1.05}, seed=2)
    lines = summary(compare(old, new, threshold="1%")).splitlines()
    assert lines[0] == "**4 tests: 1 slower, 1 faster, 2 same within 1 %; alpha 5 % over all tests (Holm)**"
    assert lines[4].startswith("| `test_c` | slower | +")
    assert lines[5].startswith("| `test_a` | faster | -")
    fold = lines.index("<details>")
    assert lines[fold + 1 : fold + 3] == ["<summary>2 other tests</summary>", ""]
    assert sum(line.startswith(("| `test_b` | same", "| `test_d` | same")) for line in lines[fold:]) == 2
    assert lines[-1] == "</details>"


def test_every_row_has_as_many_cells_as_the_head(tmp_path: Path) -> None:
    hostile = {"a|b`c": 1.0, "<img src=x> @octocat": 1.0, "*bold* [x](y)": 1.0}
    old, new = (suite(tmp_path / f"{seed}.json", hostile, seed) for seed in (1, 2))
    text = summary(compare(old, new))
    rows = [line.replace("\\|", "") for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 5
    assert {row.count("|") for row in rows} == {7}
    assert {row.count("`") for row in rows[2:]} == {2}
    assert "`<img src=x> @octocat`" in text


def test_tests_in_only_one_file_are_listed(old: Path, tmp_path: Path) -> None:
    new = suite(tmp_path / "new.json", names(3) | {"TestD": 1.0}, seed=2, cpu_model_name="Another_CPU")
    lines = summary(compare(old, new)).splitlines()
    assert {"- only in OLD: `test_d`", "- only in NEW: `TestD`", "- possibly renamed: `test_d` to `TestD`"} <= set(
        lines
    )
    assert "Hosts differ: cpu Some CPU and Another\\_CPU" in lines
    assert "<summary>3 other tests, and notes</summary>" in lines


@pytest.mark.slow
def test_the_command_writes_the_summary_and_keeps_its_exit_code(old: Path, tmp_path: Path) -> None:
    new = suite(tmp_path / "new.json", names(4) | {"test_c": 1.05}, seed=2)
    done = cbench("compare", str(old), str(new), "--markdown", str(tmp_path / "summary.md"))
    assert done.returncode == 1
    assert (tmp_path / "summary.md").read_text().startswith("**4 tests: 1 slower, ")
    done = cbench("compare", str(old), str(new), "--markdown", str(tmp_path / "none" / "summary.md"))
    assert done.returncode == 2
    assert error_line(done).startswith("--markdown ")


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [("old.json", "new.json"), ("old.json:test_a", "new.json"), ("new.json", ".")])
def test_the_summary_never_overwrites_a_measurement(inputs: tuple[str, str], old: Path, tmp_path: Path) -> None:
    suite(tmp_path / "new.json", names(4), seed=2)
    before = old.read_bytes()
    done = cbench("compare", *(str(tmp_path / each) for each in inputs), "--markdown", str(old))
    assert done.returncode == 2
    assert error_line(done) == f"--markdown {old}: is read as input, and would be overwritten; choose another name"
    assert old.read_bytes() == before
