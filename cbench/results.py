"""Convert results to JSON: for `--json`, for facts in a store, and for state files.

A result is a frozen dataclass whose fields have the names of the JSON keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from cbench.shared_work import every

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")
MANY_ENTRIES = 1000
JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

KEY, LEFT_OUT = "json_key", "json_left_out"
"""Metadata keys of a field: the JSON key if it cannot be a Python name ("class"), and the value with which the field is
left out.

`field(metadata={KEY: "class"})`; `field(metadata={LEFT_OUT: None})` leaves the key out when the value is None.
"""


_PLAIN = frozenset((bool, int, float, str, type(None)))
_NEVER = object()


@cache
def _members(kind: type[DataclassInstance]) -> tuple[tuple[str, str, Any], ...]:
    """Each field's name, its key, and the value with which it is omitted."""
    return tuple(
        (each.name, each.metadata.get(KEY, each.name), each.metadata.get(LEFT_OUT, _NEVER)) for each in fields(kind)
    )


def to_json(value: object) -> JsonValue:
    """A result as JSON: dataclasses and mappings become objects, sequences become lists, numbers are unchanged.

    numpy scalars become Python numbers. Raises TypeError for a value without a JSON form.
    """
    if value is None or isinstance(value, (bool, int, float, str)):  # faster than a union type
        return value
    if is_dataclass(value) and not isinstance(value, type):
        content: dict[str, JsonValue] = {}
        for name, key, left_out in _members(type(value)):
            item = getattr(value, name)
            if left_out is not _NEVER and item == left_out:
                continue
            content[key] = item if type(item) in _PLAIN else to_json(item)
        return content
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    if hasattr(value, "tolist"):  # numpy, which this module does not import
        return to_json(value.tolist())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def json_text(value: object) -> str:
    """The JSON text of to_json(). The entries of a dataclass's large mappings are converted in parallel."""
    import json

    if not is_dataclass(value) or isinstance(value, type):
        return json.dumps(to_json(value))
    parts = []
    for name, key, left_out in _members(type(value)):
        item = getattr(value, name)
        if left_out is not _NEVER and item == left_out:
            continue
        if isinstance(item, Mapping) and len(item) >= MANY_ENTRIES:
            entries = list(item.items())

            def entry(number: int, entries: list[tuple[object, object]] = entries) -> str:
                name, content = entries[number]
                return f"{json.dumps(str(name))}: {json.dumps(to_json(content))}"

            parts.append(f"{json.dumps(key)}: {{{', '.join(every(entry, len(entries)))}}}")
        else:
            parts.append(f"{json.dumps(key)}: {json.dumps(to_json(item))}")
    return f"{{{', '.join(parts)}}}"


def extended(kind: type[T], value: DataclassInstance, /, **others: object) -> T:
    """A `kind` with `others` and with the values of another dataclass; `kind` must have all fields of that
    dataclass.
    """
    return kind(**{each.name: getattr(value, each.name) for each in fields(value)} | others)


def json_object(value: object) -> dict[str, JsonValue]:
    """The JSON object of a dataclass or a mapping, by to_json(). Raises TypeError for another value."""
    content = to_json(value)
    if not isinstance(content, dict):
        raise TypeError(f"{type(value).__name__} is not an object in JSON")
    return content
