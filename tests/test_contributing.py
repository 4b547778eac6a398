"""CONTRIBUTING.md: every path in it exists, or is the new file of an example, and the examples work unchanged."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests import CHECKOUT
from tests.c_code import EVERY_COMPILER, compile_strictly

PAGE = (CHECKOUT / "CONTRIBUTING.md").read_text()
PROSE = re.sub(r"^```.*?^```$", "", PAGE, flags=re.MULTILINE | re.DOTALL)
PATH = re.compile(r"(?<![\w./-])((?:quiet|cbench|tests|docs)/[\w./-]*)")
NEW = dict(re.findall(r"^New file `([^`]+)`.*?\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
PYTHON = [path for path in NEW if path.endswith(".py")]


def rows(package: str) -> set[str]:
    """The directories in the table of a package."""
    table = PAGE.partition(f"| `{package}/` |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    return {name for cell in cells for name in re.findall(r"`([\w.]+)`", cell)}


@pytest.mark.parametrize("path", sorted({each.rstrip(".") for each in PATH.findall(PROSE)} - NEW.keys()))
def test_every_named_path_exists(path: str) -> None:
    assert (CHECKOUT / path).exists()


@pytest.mark.parametrize("package", ["quiet", "cbench"])
def test_the_tables_name_exactly_the_directories(package: str) -> None:
    named = rows(package)
    assert named
    assert [name for name in named if not (CHECKOUT / package / name).exists()] == []
    assert {path.parent.name for path in (CHECKOUT / package).glob("*/*.py")} - {"profiles"} <= named


@pytest.mark.parametrize("path", NEW)
def test_a_new_file_is_new_and_its_folder_exists(path: str) -> None:
    assert not (CHECKOUT / path).exists()
    assert (CHECKOUT / path).parent.is_dir()


@pytest.mark.parametrize("path", PYTHON)
def test_a_new_python_file_can_be_imported(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "contributed.py"
    file.write_text(NEW[path])
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, module)  # dataclasses look there
    spec.loader.exec_module(module)


@EVERY_COMPILER
def test_the_new_c_file_compiles(compiler: str, tmp_path: Path) -> None:
    (path,) = [path for path in NEW if path.endswith(".c")]
    source = tmp_path / "contributed.c"
    source.write_text(NEW[path])
    compile_strictly(compiler, CHECKOUT / Path(path).parent, [source])


def test_the_new_case_has_the_form_of_the_others() -> None:
    (path,) = [path for path in NEW if path.endswith(".toml")]
    assert tomllib.loads(NEW[path])["change"]


def test_the_new_export_format_writes_one_row_per_line(tmp_path: Path) -> None:
    path = next(path for path in NEW if path.startswith("cbench/export/"))
    (tmp_path / "jsonl.py").write_text(NEW[path])
    spec = importlib.util.spec_from_file_location("jsonl", tmp_path / "jsonl.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = SimpleNamespace(table=SimpleNamespace(columns=("trial", "value"), rows=[(0, 1.5), (1, None)]))
    text = module.JsonLinesExporter().write(source, clean_only=False)
    assert [json.loads(line) for line in text.splitlines()] == [{"trial": 0, "value": 1.5}, {"trial": 1, "value": None}]
