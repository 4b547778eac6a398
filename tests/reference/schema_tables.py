"""JSON Schemas of TOML files, recorded from the parsers: the keys that they read are the valid ones."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from cbench.fleet import config as fleet
from cbench.study import config as study
from cbench.study.toml_table import TomlTable
from tests.reference.key_tables import Names
from tests.reference.schema_types import Schema, one_of, table

TEXTS: Schema = {"$ref": "#/$defs/texts"}
DEFINITIONS: Schema = {"texts": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}}


class Recording:
    """Schemas of the requested keys, by the table's path and the key, from several files of one kind."""

    def __init__(self) -> None:
        self.asked: dict[Names, dict[str, list[Schema]]] = defaultdict(lambda: defaultdict(list))
        self.required: dict[Names, set[str]] = defaultdict(set)

    def schema(self, texts: dict[Names, str], path: Names = ()) -> Schema:
        """Of a table. `texts`: descriptions by path and key. Raises ValueError for a key that no file had."""
        properties: dict[str, Schema] = {}
        for key, asked in sorted(self.asked[path].items()):
            inner = (*path, key)
            if not asked:
                raise ValueError(f"no example has {'.'.join(inner)}: its type is not known")
            defaults = [each.get("default") for each in asked]
            bare = [{name: value for name, value in each.items() if name != "default"} for each in asked]
            if bare[0] == {"table": "one"}:
                property_ = self.schema(texts, inner)
            elif bare[0] == {"table": "many"}:
                property_ = {"type": "array", "items": self.schema(texts, inner)}
            else:
                property_ = one_of(bare)
                if defaults[0] not in (None, "", []) and defaults == [defaults[0]] * len(defaults):
                    property_ = property_ | {"default": defaults[0]}
            properties[key] = ({"description": texts[inner]} if inner in texts else {}) | property_
        required = self.required[path] | {
            key for key in properties if self.asked[path][key][0].get("table") == "one" and self.required[(*path, key)]
        }
        return table(properties, sorted(required))


class RecordedTable(TomlTable):
    """A table that records the requests for its keys."""

    recording: Recording

    def _ask(self, key: str, schema: Schema, default: Any = None, needed: bool = False) -> None:
        path = tuple(each for each in self._path if isinstance(each, str))
        if key in self._known:  # what the default means is the parser's
            default, needed = None, False
        self.recording.asked[path][key].append(schema if default is None else schema | {"default": default})
        if needed:
            self.recording.required[path].add(key)

    def has(self, key: str) -> bool:
        path = tuple(each for each in self._path if isinstance(each, str))
        self.recording.asked[path].setdefault(key, [])  # with no type yet
        return super().has(key)

    def given(self, key: str) -> Any:
        self._known.append(key)
        return super().given(key)

    def text(self, key: str, default: str | None = None, choices: Sequence[str] = ()) -> str:
        self._ask(key, {"enum": list(choices)} if choices else {"type": "string"}, default, default is None)
        return super().text(key, default, choices)

    def number(self, key: str, default: float | None, least: float, most: float) -> float:
        self._ask(key, {"type": "number", "minimum": least, "maximum": most}, default, default is None)
        return super().number(key, default, least, most)

    def whole(self, key: str, default: int | None, least: int, most: int) -> int:
        self._ask(key, {"type": "integer", "minimum": least, "maximum": most}, default, default is None)
        return super().whole(key, default, least, most)

    def flag(self, key: str, default: bool | None = None) -> bool:
        self._ask(key, {"type": "boolean"}, default, default is None)
        return super().flag(key, default)

    def texts(self, key: str) -> tuple[str, ...]:
        self._ask(key, TEXTS)
        return super().texts(key)

    def table(self, key: str) -> TomlTable:
        self._ask(key, {"table": "one"})
        return self._recorded(super().table(key))

    def tables(self, key: str) -> list[TomlTable]:
        self._ask(key, {"table": "many"})
        return [self._recorded(each) for each in super().tables(key)]

    def pairs(self, key: str, kind: type, refused: Any = None) -> dict[str, Any]:
        values = {"type": "integer" if kind is int else "string"}
        self._ask(key, {"type": "object", "additionalProperties": values})
        return super().pairs(key, kind, refused)

    def _recorded(self, plain: TomlTable) -> TomlTable:
        return type(self)(plain._file, plain._lines, plain._path, plain._values)


@contextmanager
def recorded() -> Iterator[Recording]:
    """The requests of parsers in this context."""
    recording = Recording()
    kept = type("KeptTable", (RecordedTable,), {"recording": recording})
    with patch.object(study, "TomlTable", kept), patch.object(fleet, "TomlTable", kept):
        yield recording


def record(parse: Callable[[str, str, str], object], examples: Sequence[str]) -> Recording:
    """The requests of a parser in these examples, whose file is named by a number."""
    with recorded() as recording:
        for number, text in enumerate(examples):
            parse(text, f"{number}.toml", "/")
    return recording
