"""Every key of an experiment's file is in its document and in the example; nothing else is."""

from __future__ import annotations

import re

import pytest

from cbench.screen.config import model
from cbench.screen.config.example import EXAMPLE
from cbench.screen.config.file import parse
from cbench.screen.config.plan import Planned
from cbench.screen.design.testability import SEVERAL
from cbench.screen.execute.builds import FLAGS, VARIABLE
from cbench.screen.execute.levels import KERNEL, LEVEL
from cbench.study.toml_table import TomlTable
from tests import CHECKOUT

FOLDER = CHECKOUT / "docs"
DOCUMENT = (FOLDER / "screen-file.md").read_text()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """The keys that the code reads from a file: the table, by name, and the key."""
    found: set[tuple[str, str]] = set()
    take, has = TomlTable._take, TomlTable.has

    def noted(table: TomlTable, key: str, *rest: object) -> object:
        found.add((place(table), key))
        return take(table, key, *rest)

    def looked(table: TomlTable, key: str) -> bool:
        found.add((place(table), key))
        return has(table, key)

    monkeypatch.setattr(TomlTable, "_take", noted)
    monkeypatch.setattr(TomlTable, "has", looked)
    return found


def place(table: TomlTable) -> str:
    where = [part for part in table._path if isinstance(part, str)]
    return where[-1] if where else ""


def test_every_key_is_in_the_example_and_in_a_table_of_the_document(keys: set[tuple[str, str]]) -> None:
    parse(EXAMPLE, "e.toml", "/")
    assert {("screen", "seed"), ("level", "kernel"), ("constraint", "where"), ("abridgment", "minus")} <= keys
    documented = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]*`) \|", DOCUMENT, re.MULTILINE))))
    headings = set(re.findall(r"^## `\[+(\w+)\]+`$", DOCUMENT, re.MULTILINE))
    assert headings == {key for table, key in keys if not table}
    for table, key in keys:
        if table and table != "reset":  # that is a study's
            assert key in documented or (table, key) == ("level", "name"), (table, key)
            written = re.search(rf"(^|[ #]){key} *=", EXAMPLE, re.MULTILINE)
            assert written or f"[[{table}.{key}]]" in EXAMPLE, (table, key)


def test_the_boot_check_in_the_document_is_the_one_that_the_plan_names() -> None:
    text = DOCUMENT.split("### The boot check\n", 1)[1].split("`cbench screen analyze`", 1)[0]
    code = "\n".join(line.removeprefix("    ") for line in text.splitlines() if line.startswith("    "))
    planned = Planned(parse(code, "e.toml", "/"))
    plan = planned.result()
    assert (len(plan.batches), plan.trials) == (20, 2020)
    assert [(each.name, each.testable) for each in plan.effects] == [("smt", True)]
    (said,) = plan.words
    assert said.startswith("smt: 20 boots, 10 of on, 10 of off;")
    assert said.endswith("neither alternating nor in blocks)")
    for key in ("batches = 10", 'sequence = "mixed"'):
        assert key in code
        assert key in SEVERAL


def test_every_choice_and_variable_is_in_the_document() -> None:
    for each in (*model.DESIGNS, *model.CONSTRAINTS, model.NO_PROFILER, "fp", "dwarf", "lbr"):
        assert f'`"{each}"`' in DOCUMENT or f"`{each}`" in DOCUMENT, each
        assert each in EXAMPLE, each
    for each in (FLAGS, VARIABLE, KERNEL, LEVEL):
        assert f"${each}" in DOCUMENT, each


def test_every_column_of_an_export_is_in_the_document() -> None:
    for each in model.COLUMNS:
        assert f"`{each}`" in DOCUMENT, each


def test_its_links_have_targets() -> None:
    for file, anchor in re.findall(r"\]\(([\w-]*\.?m?d?)#([\w-]+)\)", DOCUMENT):
        text = (FOLDER / file).read_text() if file else DOCUMENT
        headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}, (file, anchor)
