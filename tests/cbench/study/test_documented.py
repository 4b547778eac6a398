"""Every key of a study's file is in its document and in the example; nothing else is."""

from __future__ import annotations

import re

import pytest

from cbench.study import model
from cbench.study.config import parse
from cbench.study.example import EXAMPLE
from cbench.study.instruments.registry import INSTRUMENTS
from cbench.study.orders import DESIGNS
from cbench.study.process import process_tags
from cbench.study.resets.registry import RESETS
from cbench.study.toml_table import TomlTable
from tests import CHECKOUT

DOCUMENT = (CHECKOUT / "docs" / "study-file.md").read_text()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> set[tuple[str, str]]:
    """The keys that the code reads from a file: the table, by name, and the key."""
    found: set[tuple[str, str]] = set()
    take, has = TomlTable._take, TomlTable.has

    def noted(table: TomlTable, key: str, *rest: object) -> object:
        where = [part for part in table._path if isinstance(part, str)]
        found.add((where[-1] if where else "", key))
        return take(table, key, *rest)

    def looked(table: TomlTable, key: str) -> bool:
        where = [part for part in table._path if isinstance(part, str)]
        found.add((where[-1] if where else "", key))
        return has(table, key)

    monkeypatch.setattr(TomlTable, "_take", noted)
    monkeypatch.setattr(TomlTable, "has", looked)
    return found


def test_every_key_is_in_the_example_and_in_a_table_of_the_document(keys: set[tuple[str, str]]) -> None:
    parse(EXAMPLE, "s.toml", "/")
    assert {("study", "seed"), ("test", "workload"), ("metric", "better"), ("reset", "khz")} <= keys
    documented = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]*`) \|", DOCUMENT, re.MULTILINE))))
    headings = set(re.findall(r"^## `\[+(\w+)\]+`$", DOCUMENT, re.MULTILINE))
    assert headings == {key for table, key in keys if not table}
    for table, key in keys:
        if table:
            assert key in documented, (table, key)
            assert re.search(rf"^(# )?{key} *=", EXAMPLE, re.MULTILINE) or f"[[{table}.{key}]]" in EXAMPLE, (table, key)


def test_every_choice_is_in_the_document_and_in_the_example() -> None:
    resets = [each.kind for each in RESETS]
    plain = [each.source for each in INSTRUMENTS if not each.argument]
    for each in (*DESIGNS, *resets, *plain, model.VALUE, "trial", "run"):
        assert f"`{each}`" in DOCUMENT or f'`"{each}"`' in DOCUMENT, each
        assert each in EXAMPLE, each
    for each in (instrument.source for instrument in INSTRUMENTS if instrument.argument):
        assert f"`{each}:" in DOCUMENT
        assert f"{each}:" in EXAMPLE
    for each in (process_tags.RUN, process_tags.POSITION, process_tags.TEST, process_tags.MARK, process_tags.PADDING):
        assert f"`{each}`" in DOCUMENT


def test_defaults_in_the_document_are_those_of_the_code() -> None:
    made = parse("[study]\nrepetitions = 1\n[[test]]\nname = 'a'\ncommand = 'x'\n", "s.toml", "/")
    given = dict(re.findall(r"^\| `(\w+)` \| `([^`]*)` \|", DOCUMENT, re.MULTILINE))
    assert given["design"] == f'"{made.design}"'
    assert given["seed"] == str(made.seed)
    assert given["alpha"] == str(made.alpha)
    assert given["failures"] == f'"{made.failures}"'
    assert given["counter"] == f'"{made.counter}"'
    assert given["kind"] == f'"{made.reset.kind}"'
    assert given["settle"] == f"{made.reset.settle_s:g}"
    assert f"| `timeout` | `{made.tests[0].timeout_s:g}` |" in DOCUMENT
    assert given["better"] == f'"{made.tests[0].metrics[0].better}"'
