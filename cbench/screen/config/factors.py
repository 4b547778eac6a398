"""Parse the factors of an experiment's file and the way each of their levels is set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from cbench.screen.config.model import NO_PROFILER, Level, ScreenFactor
from cbench.study.config import OURS, profile_of
from cbench.study.instruments import perf_record
from cbench.study.toml_table import TomlTable
from quiet import UsageError, format_cpus, parse_cpus

WORD = re.compile(r"[^\s=,*:\x00-\x1f\x7f-\x9f]+")
"""Matches the names that filters and test names can contain."""
WAYS = (
    *("found", "environment", "cpus", "aslr", "profiler", "build", "flags", "knob", "profile", "governor", "command"),
    "kernel",
)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
QUIET = "quiet"
SETS = "has no setting: write one of " + ", ".join(WAYS[1:]) + ", or found = true if the host already has this level"


def word(table: TomlTable, key: str) -> str:
    """A name that can be used in a filter, from this key of the table. Raises UsageError for any other text."""
    text = table.label(key)
    if not WORD.fullmatch(text):
        raise table.error(key, f"{text!r}: write a string without spaces, control characters, = , * or :")
    return text


def factors_of(whole: TomlTable, check: bool) -> tuple[ScreenFactor, ...]:
    """All factors of the file. `check`: require that knobs and profiles exist. Raises UsageError for an invalid
    factor.
    """
    tables = whole.tables("factor")
    if not tables:
        raise whole.error("factor", "is missing: an experiment needs at least one [[factor]]")
    factors: dict[str, ScreenFactor] = {}
    for table in tables:
        factor = _factor(table, check)
        if factor.name in factors:
            raise table.error("name", f"{factor.name!r} appears twice")
        factors[factor.name] = factor
    return tuple(factors.values())


def _factor(table: TomlTable, check: bool) -> ScreenFactor:
    name = word(table, "name")
    hard = table.flag("hard", False)
    levels: dict[str, Level] = {}
    tables = table.tables("level")
    for each in tables:
        level = _level(each, check)
        if level.name in levels:
            raise each.error("name", f"{level.name!r} appears twice")
        if level.kernel is not None and not hard:
            raise each.error("kernel", f"changes only at boot: write hard = true in the factor {name!r}")
        levels[level.name] = level
    if len(levels) < 2:
        raise table.error(
            "level",
            f"{name!r} has {len(levels)}: a factor needs at least 2 levels; write a constant as [[controlled]]",
        )
    profiled = _profiled(tuple(levels.values()))
    _check_levels(tables, profiled)
    table.end()
    return ScreenFactor(name, profiled, hard)


def _profiled(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    """The levels; if any has a profiler, those without one get NO_PROFILER, even if a response consists of samples."""
    if not any(level.profiler for level in levels):
        return levels
    return tuple(replace(level, profiler=level.profiler or NO_PROFILER) for level in levels)


def _check_levels(tables: Sequence[TomlTable], levels: Sequence[Level]) -> None:
    """Check that levels differ, and that each level replaces the settings of the others. Raises UsageError if not."""
    seen: list[Level] = []
    for table, level in zip(tables, levels, strict=True):
        bare = replace(level, name="", found=False, restore=None, check="")
        if bare in seen:
            same = levels[seen.index(bare)].name
            raise table.error(
                "", f"the level {level.name!r} has the same settings as {same!r}: change or remove one of them"
            )
        seen.append(bare)
    without = next((level.name for level in levels if not level.command), None)
    for table, level in zip(tables, levels, strict=True):
        if level.command and level.restore is None and without is not None:
            raise table.error(
                "command",
                f"its setting persists at the level {without!r}, which has no command: "
                'write `restore`, or restore = "" if nothing needs restoring',
            )


def _level(table: TomlTable, check: bool) -> Level:
    name = word(table, "name")
    ways = [way for way in WAYS if table.has(way)]
    level = Level(
        name=name,
        found=table.flag("found", False),
        environment=table.variables("environment", OURS, check),
        cpus=_cpus(table),
        aslr=table.flag("aslr", False) if table.has("aslr") else None,
        profiler=_profiler(table),
        build=_text(table, "build"),
        flags=table.text("flags") if table.has("flags") else None,
        knobs=_knobs(table, check),
        profile=_profile(table, check),
        governor=_text(table, "governor"),
        command=_text(table, "command"),
        restore=table.text("restore").strip() if table.has("restore") else None,
        check=_text(table, "check"),
        kernel=table.texts("kernel") if table.has("kernel") else None,
    )
    if level.restore is not None and not level.command:
        raise table.error("restore", f"the level {name!r} has no command to undo")
    _check_way(table, level, ways)
    table.end()
    return level


def _check_way(table: TomlTable, level: Level, ways: list[str]) -> None:
    name = level.name
    if level.found and len(ways) > 1:
        raise table.error("found", f"the level {name!r} has both found = true and {ways[1]}: write only one of them")
    if not ways or (ways == ["found"] and not level.found):
        raise table.error("", f"the level {name!r} {SETS}")
    if "environment" in ways and not level.environment:
        raise table.error("environment", "contains no variable")
    for variable in level.environment:
        if not VARIABLE.fullmatch(variable):
            raise table.error("environment", f"{variable!r} is not the name of a variable")
    if level.profile and level.knobs:
        raise table.error(
            "profile",
            f"the level {name!r} has both a profile and knobs: write only one of them; a profile can contain knobs",
        )
    if level.kernel and (wrong := [each for each in level.kernel if not each or any(c.isspace() for c in each)]):
        raise table.error(
            "kernel", f'{wrong[0]!r}: write each kernel parameter as a string without spaces, such as "nosmt"'
        )


def _text(table: TomlTable, key: str) -> str:
    there, text = table.has(key), table.text(key, "")
    if there and not text.strip():
        raise table.error(key, "is empty")
    return text


def _cpus(table: TomlTable) -> str:
    if not table.has("cpus"):
        return ""
    text = table.text("cpus")
    try:
        cpus = parse_cpus(text)
    except UsageError as error:
        raise table.error("cpus", str(error)) from None
    if not cpus:
        raise table.error("cpus", "lists no CPU; write a list such as 2-3")
    return format_cpus(cpus)


def _profiler(table: TomlTable) -> str:
    if not table.has("profiler"):
        return ""
    text = table.text("profiler")
    if text == NO_PROFILER:
        return text
    try:
        sampling = perf_record.parse(text)
    except ValueError as error:
        shown = str(error).replace(f" {perf_record.SUCH_AS}", " fp,")
        raise table.error("profiler", f"{text!r}: {shown}") from None
    if not sampling.call_graph:
        raise table.error("profiler", f"{text!r}: begin with the call graph: {', '.join(perf_record.CALL_GRAPHS)}")
    return text


def _knobs(table: TomlTable, check: bool) -> dict[str, str]:
    """The knobs of a level and their values, from texts such as "timer_migration" (the knob's quiet value) or
    "smt=off". Raises UsageError for an empty list, a repeated knob and, with `check`, an unknown knob or value.
    """
    there, knobs = table.has("knob"), dict[str, str]()
    for text in table.texts("knob"):
        name, _, value = text.partition("=")
        if name in knobs:
            raise table.error("knob", f"{name!r} appears twice")
        knobs[name] = value or QUIET
    if there and not knobs:
        raise table.error("knob", "contains no knob; `quiet explain` lists them")
    if check and knobs:
        from quiet import KNOBS

        for name, value in knobs.items():
            knob = KNOBS.get(name)
            if knob is None:
                raise table.error("knob", f"{name!r}: unknown; `quiet explain` lists the knobs")
            number = knob.numeric and value.isdecimal() and int(value) >= 1
            choices = [each for each in knob.choices if each != "leave"]
            if value not in choices and not number:
                more = " or a number of at least 1" if knob.numeric else ""
                raise table.error("knob", f"{name}={value}: write {name}={f' or {name}='.join(choices)}{more}")
    return knobs


def _profile(table: TomlTable, check: bool) -> str:
    if table.has("profile") and not str(table.given("profile")).strip():
        raise table.error("profile", "is empty")
    return profile_of(table, check)
