"""Frozen results as JSON values: the one place where a result becomes dictionaries.

A result's fields are named as its JSON keys. Used at the edge only: by `--json`, by exports and by the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

KEY, LEFT_OUT = "json_key", "json_left_out"
"""Metadata of a field: its key where a Python name cannot be it ("class"), and when it is left out.

`field(metadata={KEY: "class"})`; `field(metadata={LEFT_OUT: None})` leaves the key out when the value is None.
"""


def to_json(value: object) -> JsonValue:
    """A result as JSON: dataclasses and mappings become objects, sequences become lists, numbers stay as they are.

    numpy scalars become Python numbers. Raises TypeError for what has no JSON form.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        made: dict[str, JsonValue] = {}
        for each in fields(value):
            item = getattr(value, each.name)
            if LEFT_OUT in each.metadata and item == each.metadata[LEFT_OUT]:
                continue
            made[each.metadata.get(KEY, each.name)] = to_json(item)
        return made
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [to_json(item) for item in value]
    if hasattr(value, "tolist"):  # numpy, which this module does not import
        return to_json(value.tolist())
    raise TypeError(f"{type(value).__name__} has no JSON form")


def json_object(value: object) -> dict[str, JsonValue]:
    """to_json() of a dataclass or a mapping."""
    made = to_json(value)
    if not isinstance(made, dict):
        raise TypeError(f"{type(value).__name__} is no object in JSON")
    return made
