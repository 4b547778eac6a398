"""The generated pages agree with the code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.reference import commands, schemas, toml_files
from tests.reference.key_tables import Names
from tests.reference.schema_types import Schema


def keys(schema: Schema, path: Names = ()) -> Iterator[tuple[Names, Schema]]:
    for key, each in schema.get("properties", {}).items():
        yield (*path, key), each
        yield from keys(each.get("items", each), (*path, key))


@pytest.mark.parametrize("page", [commands, toml_files])
def test_a_generated_page_is_up_to_date(page: ModuleType) -> None:
    assert page.FILE.read_text() == page.written(), f"run: python -m {page.__name__}"


def test_every_key_of_a_file_has_a_type_and_a_meaning() -> None:
    tables = [row.strip("|").split(" | ") for row in re.findall(r"^\| `.*\|$", toml_files.written(), re.MULTILINE)]
    assert len(tables) > 200
    assert not [cells[0] for cells in tables if not cells[1].strip() or not cells[-1].strip()]


@pytest.mark.parametrize("name", ["study", "screen", "gate"])
def test_the_page_of_a_file_states_the_defaults_of_the_parser(name: str) -> None:
    of_page = schemas.described(name)
    compared = 0
    for path, schema in keys(schemas.files()[f"{name}.toml"]):
        words = of_page[path].default if path in of_page else ""
        literal = re.fullmatch(r"`?(\"[^\"]*\"|[\d.]+|true|false)`?", words)
        if literal and "default" in schema:
            assert json.loads(literal[1]) == schema["default"], path
            compared += 1
    assert compared > 4
