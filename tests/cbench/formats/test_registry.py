"""Which reader reads a file, and directories of files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cbench.formats import registry
from quiet import UsageError
from tests.cbench.formats.test_fixtures import DATA
from tests.cbench.store.storing import noisy, stored


def refused(path: Path, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        registry.read(path)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello\n", "unknown format; cbench reads a store of cbench, Criterion directory, google/benchmark JSON"),
        (b"a;value\nx;1,5\n", ": separated by semicolons; export it with commas as separators and points as decimal"),
        (b'"a"\t"value"\n"x"\t1\n', ": separated by tabs; export it with commas as separators and points as decimal"),
        (b"hello; world\n", "unknown format; cbench reads "),
        (b"{}", "unknown format; cbench reads "),
        (b"[1, 2]", "unknown format; cbench reads "),
        (b"<html></html>", "unknown format; cbench reads "),
        (b"\x89PNG\r\n", "unknown format; cbench reads "),
        (b"", "r: empty file"),
        (b'{"results": [\n  1,,', "damaged JSON: line 2, column 5: Expecting value"),
        (b'{"results": "\xff"}', "line 1: not UTF-8 text"),
    ],
)
def test_a_file_of_no_known_format_is_refused(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(content)
    refused(tmp_path / "r", message)


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    shutil.copy(DATA / "catch2-2.13.10.xml", tmp_path / "results.json")
    shutil.copy(DATA / "go-1.19-count.txt", tmp_path / "results.csv")
    shutil.copy(DATA / "pyperf-2.10.0-suite.json.gz", tmp_path / "results")
    assert registry.read(tmp_path / "results.json")[0].name == "sums: accumulate"
    assert registry.read(tmp_path / "results")[0].name == "sum"
    assert registry.read(tmp_path / "results.csv")[0].name == "BenchmarkSort/n=10-2"


def test_sorted_keys_and_no_blanks_do_not_hide_a_format(tmp_path: Path) -> None:
    for file in DATA.glob("*.json"):
        content = json.dumps(json.loads(file.read_text()), sort_keys=True, separators=(",", ":"))
        (tmp_path / file.name).write_text(content)
        assert registry.recognize(tmp_path / file.name) is registry.recognize(file)


def test_a_folder_of_files_has_the_processes_of_all(tmp_path: Path) -> None:
    for number in (3, 1, 2):
        shutil.copy(DATA / "google-1.8.3-repetitions.json", tmp_path / f"{number}.json")
    (tmp_path / ".hidden").write_text("hello")
    (one, _), (first, second) = registry.read(tmp_path / "1.json"), registry.read(tmp_path)
    assert (first.name, second.name) == ("sum_range", "sort")
    assert first.processes == one.processes * 3
    assert first.begun == one.begun * 3


def test_a_test_that_only_some_files_have_has_their_processes(tmp_path: Path) -> None:
    for name in ("hyperfine-1.15-parameters.json", "hyperfine-1.15-two-commands.json"):
        shutil.copy(DATA / name, tmp_path)
    assert {each.name: len(each.processes) for each in registry.read(tmp_path)} == {
        "sleep 0.001": 5,
        "sleep 0.002": 5 + 12,
        "true": 12,
    }


def test_stores_in_a_folder_are_combined(tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        stored(tmp_path / name, noisy(1e6, 3, 5, seed=1))
    (sample,) = registry.read(tmp_path)
    assert len(sample.processes) == 6


def test_a_folder_whose_files_are_of_several_hosts_names_them_all(tmp_path: Path) -> None:
    for name, cpu in (("a", "Model 1"), ("b", "Model 2"), ("c", "Model 1")):
        text = (DATA / "go-1.19-count.txt").read_text()
        (tmp_path / name).write_text(text.replace("Intel(R) Xeon(R) Processor", cpu))
    assert registry.read(tmp_path)[0].host == "Model 1 and Model 2"


def test_a_folder_whose_files_are_of_several_kernels_has_a_passport_with_them_all(tmp_path: Path) -> None:
    data = (DATA / "pytest-benchmark-5.3.1.json").read_text()
    kernel = json.loads(data)["machine_info"]["release"]
    for name, release in (("a", kernel), ("b", "5.10"), ("c", kernel)):
        (tmp_path / name).write_text(data.replace(kernel, release))
    passport = registry.read(tmp_path)[0].passport
    assert passport is not None
    assert (passport.cpu, passport.kernel) == ("Intel(R) Xeon(R) Processor", f"5.10 or {kernel}")


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "the directory is empty")
    shutil.copy(DATA / "go-1.19-count.txt", tmp_path / "a.txt")
    shutil.copy(DATA / "pyperf-2.10.0.json", tmp_path / "b.json")
    refused(tmp_path, "files of several formats: a.txt is Go benchmark text, b.json pyperf JSON")
    (tmp_path / "b.json").write_text("hello")
    refused(tmp_path, "b.json: unknown format; the directory must contain only results")


def test_damage_in_one_file_of_a_folder_names_that_file(tmp_path: Path) -> None:
    document = json.loads((DATA / "hyperfine-1.15-parameters.json").read_text())
    (tmp_path / "a.json").write_text(json.dumps(document))
    document["results"][1]["times"][2] = "fast"
    (tmp_path / "b.json").write_text(json.dumps(document))
    refused(tmp_path, "b.json: hyperfine JSON: results[1].times[2]: not a number")


def test_a_folder_of_too_many_folders_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cbench.formats.criterion.MOST", 3)
    for name in "abc":
        (tmp_path / name).mkdir()
    refused(tmp_path, "contains more than 3 directories; give Criterion")


def test_a_test_of_a_table_without_any_value_has_failed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("test,value\na,nan\na,NA\nb,1\nb,\n")
    a, b = sorted(registry.read_with_failed(tmp_path / "a.csv"), key=lambda each: each.name)
    assert (a.processes, a.failed) == ((), ("line 2: column value: 'nan' is not a number",))
    assert (b.processes, b.failed) == (((1,),), ())
    assert [each.name for each in registry.read(tmp_path / "a.csv")] == ["b"]
