"""JSON Schemas of results: from dataclasses and named tuples, as `to_json` of `quiet` and of `cbench` writes them."""

from __future__ import annotations

import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from cbench.results import KEY, LEFT_OUT
from quiet.noise.budgets import Nanoseconds

Schema = dict[str, Any]
SCALARS: dict[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", Nanoseconds: "integer"}


def one_of(schemas: Sequence[Schema]) -> Schema:
    """The union of these schemas; plain types, and lists of values, become one."""
    unique = [each for number, each in enumerate(schemas) if each not in schemas[:number]]
    if len(unique) == 1:
        return unique[0]
    if all(each.keys() == {"enum"} for each in unique):
        return {"enum": list(dict.fromkeys(value for each in unique for value in each["enum"]))}
    if all(each.keys() == {"type"} for each in unique):
        return {"type": [each["type"] for each in unique]}
    return {"anyOf": unique}


def table(properties: Mapping[str, Schema], required: Sequence[str] | None = None) -> Schema:
    """An object with these keys and no others. `required` None: all of them."""
    needed = list(properties if required is None else required)
    schema = {"type": "object", "properties": dict(properties), "required": needed, "additionalProperties": False}
    return schema if needed else {key: value for key, value in schema.items() if key != "required"}


def description(kind: type) -> Schema:
    """The docstring of a class, in one line; nothing where Python made it."""
    text = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    return {} if not text or text.startswith(f"{kind.__name__}(") else {"description": text}


class ResultSchemas:
    """Schemas of types; those of classes are kept in `definitions`. `tuples`: named tuples become lists (cbench)."""

    def __init__(self, tuples: bool) -> None:
        self._tuples = tuples
        self.definitions: dict[str, Schema] = {}

    def of(self, kind: Any) -> Schema:
        """The schema of a type's JSON. Raises TypeError for a type that has none."""
        if kind is None or kind is type(None):
            return {"type": "null"}
        if kind in SCALARS:
            return {"type": SCALARS[kind]}
        origin, arguments = get_origin(kind), get_args(kind)
        if origin in (Union, types.UnionType):
            return one_of([self.of(each) for each in arguments])
        if origin is Literal:
            return {"enum": list(arguments)}
        if origin is not None and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        if origin is frozenset and not self._tuples:
            return {"type": "string"}  # CPUs, in the kernel's notation
        if origin is tuple and arguments[-1] is not Ellipsis:
            return self._row([self.of(each) for each in arguments])
        if origin in (list, tuple, frozenset, set, Sequence):
            return {"type": "array", "items": self.of(arguments[0])}
        if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
            return self._class(kind)
        raise TypeError(f"{kind!r} has no JSON Schema")

    def some(self, kind: type, *names: str) -> Schema:
        """The properties of some fields; an empty text may be null, as `fields` of quiet/cli/json_output.py has it."""
        hints = get_type_hints(kind)
        return {name: self.of(hints[name] | None if hints[name] is str else hints[name]) for name in names}

    def properties(self, kind: type) -> Schema:
        """All fields by key."""
        hints = get_type_hints(kind)
        if not is_dataclass(kind):
            return {name: self.of(hints[name]) for name in kind._fields}  # type: ignore[attr-defined]
        return {each.metadata.get(KEY, each.name): self.of(hints[each.name]) for each in fields(kind)}

    def _class(self, kind: type) -> Schema:
        if kind.__name__ not in self.definitions:
            self.definitions[kind.__name__] = {}  # it may hold itself
            properties = self.properties(kind)
            if self._tuples and not is_dataclass(kind):
                schema = self._row(list(properties.values()))
            else:
                optional = (
                    {each.metadata.get(KEY, each.name) for each in fields(kind) if LEFT_OUT in each.metadata}
                    if is_dataclass(kind)
                    else set()
                )
                schema = table(properties, [name for name in properties if name not in optional])
            self.definitions[kind.__name__] = description(kind) | schema
        return {"$ref": f"#/$defs/{kind.__name__}"}

    @staticmethod
    def _row(items: list[Schema]) -> Schema:
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}
