"""Constraints and abridgments of an experiment's file: which treatments are meant.

A filter is a text of factors and levels, as a treatment's name is: "fp=0 prf=1,2". A factor that is not named, or has
"*", may have any level.
"""

from __future__ import annotations

from collections.abc import Sequence

from cbench.screen.config.model import CONSTRAINTS, UNOBTAINABLE, Abridgment, Constraint, ScreenFactor, Where
from cbench.toml_table import TomlTable


def constraints(whole: TomlTable, factors: Sequence[ScreenFactor], responses: Sequence[str]) -> tuple[Constraint, ...]:
    """All of them. Raises UsageError."""
    return tuple(_constraint(table, factors, responses) for table in whole.tables("constraint"))


def _constraint(table: TomlTable, factors: Sequence[ScreenFactor], responses: Sequence[str]) -> Constraint:
    kind = table.text("kind", None, CONSTRAINTS)
    where = filter_of(table, "where", table.text("where"), factors)
    named = table.texts("responses")
    if (kind == UNOBTAINABLE) != bool(named):
        why = "is missing: which ones cannot be had" if kind == UNOBTAINABLE else f"means nothing where kind = {kind!r}"
        raise table.error("responses", why)
    for each in named:
        if each not in responses:
            raise table.error("responses", f"{each!r}: one of {', '.join(responses)}")
    made = Constraint(kind, where, table.text("reason"), named)
    if not made.reason.strip():
        raise table.error("reason", "is empty")
    table.end()
    return made


def abridgments(whole: TomlTable, factors: Sequence[ScreenFactor]) -> tuple[Abridgment, ...]:
    """All of them. Raises UsageError."""
    found: dict[str, Abridgment] = {}
    for table in whole.tables("abridgment"):
        name = table.text("name")
        if not name.strip() or name in found:
            raise table.error("name", "is empty" if not name.strip() else f"{name!r} is there twice")
        lists = {
            key: tuple(filter_of(table, key, each, factors) for each in table.texts(key)) for key in ("only", "minus")
        }
        if not any(lists.values()):
            raise table.error("minus", "is missing: which treatments go, or `only`: which stay")
        table.end()
        found[name] = Abridgment(name, lists["only"], lists["minus"])
    return tuple(found.values())


def filter_of(table: TomlTable, key: str, text: str, factors: Sequence[ScreenFactor]) -> Where:
    """A filter from its text. Raises UsageError for an unknown factor or level."""
    known = {factor.name: factor for factor in factors}
    found: dict[str, tuple[str, ...]] = {}
    for part in text.split():
        name, equals, levels = part.partition("=")
        if not equals:
            raise table.error(key, f"{part!r}: write FACTOR=LEVEL, several levels with commas")
        if name not in known:
            raise table.error(key, f"unknown factor {name!r}; there are {', '.join(known)}")
        if name in found:
            raise table.error(key, f"{name!r} is there twice; write its levels with commas")
        wanted = known[name].names if levels == "*" else tuple(levels.split(","))
        if wrong := [each for each in wanted if each not in known[name].names]:
            raise table.error(key, f"{name} has no level {wrong[0]!r}; there are {', '.join(known[name].names)}")
        found[name] = wanted
    if not found:
        raise table.error(key, 'is empty: write FACTOR=LEVEL, such as "fp=0 prf=1,2"')
    return found
