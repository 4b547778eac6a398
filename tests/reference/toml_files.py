"""docs/reference-files.md: the keys of each TOML file, and examples. `python -m tests.reference.toml_files` writes it.

Types, limits and defaults are the schemas', so the parsers'; the meanings are those of the pages that explain a file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from cbench.screen.config.example import EXAMPLE as SCREEN
from cbench.study.example import EXAMPLE as STUDY
from quiet.knobs.registry import KNOBS
from quiet.settings.profile import bundled, load
from tests import CHECKOUT
from tests.reference import schemas
from tests.reference.key_tables import KeyRow, Names, moved
from tests.reference.schema_types import Schema

FILE = CHECKOUT / "docs" / "reference-files.md"
PAGES = {"study": "study-file.md", "screen": "screen-file.md", "gate": "gate.md", "fleet": "fleet.md"}
TITLES = {"study": "study.toml", "screen": "screen.toml", "gate": "gate.toml", "profile": "Profiles"}
INTRODUCTIONS = {
    "study": "`cbench order init` writes the example below; [study-file](study-file.md) explains the keys.",
    "screen": "`cbench screen init` writes the example below; [screen-file](screen-file.md) explains the keys.",
    "gate": "[gate](gate.md) explains the keys and has an example.",
    "profile": "The example is the profile `bench`; [knobs](knobs.md) explains the knobs. A knob that a profile does "
    'not name is left alone, as with `"leave"`.',
}
EXAMPLES = {"study": STUDY, "screen": SCREEN, "profile": schemas.PROFILE.read_text()}
TYPES = {"string": "text", "number": "number", "integer": "whole number", "boolean": "`true`, `false`"}
HUGE = 2**62
HEAD = ("key", "type", "default", "meaning")


def type_of(schema: Schema) -> str:
    """A key's type and limits, in words."""
    if "anyOf" in schema:
        return " or ".join(type_of(each) for each in schema["anyOf"])
    if "enum" in schema:
        return ", ".join(f"`{json.dumps(each)}`" for each in schema["enum"])
    if "$ref" in schema:
        return "text or list of texts"
    kind = schema["type"]
    if isinstance(kind, list):
        return " or ".join(TYPES[each] for each in kind)
    if kind == "array":
        return f"list of {type_of(schema['items'])}s"
    if kind == "object":
        return f"table of {type_of(schema['additionalProperties'])}s"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None or (high is not None and high > HUGE):
        return TYPES[kind]
    return f"{TYPES[kind]} from {_shown(low)}" + (f" to {_shown(high)}" if high is not None else "")


def _shown(limit: float) -> str:
    return f"{limit:,.0f}" if limit == int(limit) else f"{limit:g}"


def default_of(key: str, schema: Schema, required: bool, row: KeyRow | None) -> str:
    """The parser's default as TOML has it; else "required", or the page's words."""
    if "default" in schema:
        value = schema["default"]
        return f"`{json.dumps(int(value) if isinstance(value, float) and value == int(value) else value)}`"
    return "required" if required else row.default if row else ""


def tables(name: str, schema: Schema, path: Names = (), many: bool = False) -> Iterator[str]:
    """The keys of a table, then of the tables in it, each as a section."""
    described = schemas.described(name) if name in PAGES else {}
    places = [each[: len(path) + 1] for each in described]
    known = sorted(schema.get("properties", {}).items(), key=lambda item: _place((*path, item[0]), places))
    lines, below = [], []
    for key, each in known:
        inner = (*path, key)
        of_items = each.get("items", {}) if each.get("type") == "array" else each
        if "properties" in of_items:
            below.append((inner, of_items, of_items is not each))
            if path == ():
                continue
        row = described.get(inner)
        kind = f"tables `[[{'.'.join(inner)}]]`" if of_items is not each and "properties" in of_items else type_of(each)
        meaning = moved(row.meaning, PAGES[name]) if row else each.get("description", "")
        default = default_of(key, each, key in schema.get("required", ()), row)
        lines.append(f"| `{key}` | {kind} | {default} | {meaning} |")
    if lines and path not in (("fleet",), ("knobs",)):
        title = ".".join(path)
        heading = f"\n### `[[{title}]]`\n" if many else f"\n### `[{title}]`\n" if path else ""
        yield f"{heading}\n| {' | '.join(HEAD)} |\n{'| --- ' * len(HEAD)}|\n" + "\n".join(lines) + "\n"
    for inner, of_items, list_of in below:
        yield from tables(name, of_items, inner, list_of)


def _place(path: Names, places: list[Names]) -> int:
    """Where the page has it; what it does not have comes last."""
    return places.index(path) if path in places else len(places)


def knobs() -> str:
    """A row for each knob: what it may be set to, and what the bundled profiles set."""
    profiles = {name: load(name).knobs for name in bundled()}
    rows = [
        f"| `{knob.name}` | {type_of(schemas.of_knob(knob))} | "
        + " | ".join(f"`{each.get(knob.name, 'leave')}`" for each in profiles.values())
        + f" | {knob.title} |"
        for knob in KNOBS
    ]
    head = ["key", "values", *(f"`{name}`" for name in profiles), "meaning"]
    quoted = 'A name with a dot must be quoted: `"irq.default" = "quiet"`.'
    return f"\n### `[knobs]`\n\n{quoted}\n\n| {' | '.join(head)} |\n{'| --- ' * len(head)}|\n" + "\n".join(rows) + "\n"


def written() -> str:
    """The page as the code has it now."""
    of_files = schemas.files()
    text = (
        "# Keys of TOML files\n\nWritten by `python -m tests.reference.toml_files`. A study and a screen may also have "
        "the table [`[fleet]`](fleet.md#the-table-fleet).\n\nEditors complete and check these keys, and show their "
        "meaning: [schemas](schemas/README.md#editors) says how.\n\n"
    )
    text += "".join(f"- [{title}](#{title.lower().replace('.', '')})\n" for title in TITLES.values())
    for name, title in TITLES.items():
        text += f"\n## {title}\n\n{INTRODUCTIONS[name]}\n" + "".join(tables(name, of_files[f"{name}.toml"]))
        text += knobs() if name == "profile" else ""
        if name in EXAMPLES:
            text += f"\n### Example of {'a profile' if name == 'profile' else title}\n\n"
            text += f"```text\n{EXAMPLES[name].rstrip()}\n```\n"
    return text


if __name__ == "__main__":
    FILE.write_text(written())
