"""Parse and check the table `[suite]` of a study's file."""

from __future__ import annotations

import re

from cbench.study.suite.presets import BY_NAME, Preset
from cbench.study.suite.suite import ORDER, PROGRAM, SEED, SELECTING, TESTS, Isolation, Suite
from cbench.study.toml_table import TomlTable

DAY_S = 86_400.0
BOTH = "both"
_NONE = Preset("", (), ())


def parse(table: TomlTable, timeout_s: float, better: tuple[str, str]) -> Suite:
    """The suite that a table describes. `timeout_s`: the default time limit in seconds; `better`: the possible
    directions, the default first. Raises UsageError if the table is invalid.
    """
    preset = BY_NAME[table.text("preset", None, tuple(BY_NAME))] if table.has("preset") else _NONE
    program = table.texts("program") or preset.program
    discover = table.texts("discover") or preset.discover
    run = table.texts("run") or preset.run
    for key, words in (("discover", discover), ("run", run)):
        if not words:
            raise table.error(key, f"is missing: write a list of words, or set preset to one of {', '.join(BY_NAME)}")
        if PROGRAM in words and not program:
            example = preset.name or "bench"
            raise table.error("program", f'is missing: write the words that start the harness, such as ["./{example}"]')
        for whole in (PROGRAM, TESTS):
            if any(whole in word and whole != word for word in words):
                raise table.error(key, f"{whole} must be a separate word: it expands to several")
    if not any(each in word for each in SELECTING for word in run):
        raise table.error("run", f"selects no tests: one of its words must contain {' or '.join(SELECTING)}")
    suite = Suite(
        harness=preset.name or "the suite",
        program=program,
        discover=discover,
        run=run,
        names=table.text("names", preset.names),
        shuffles=preset.shuffles and run == preset.run,
        ordered=preset.ordered if preset is not _NONE else any(SEED in word for word in run),
        escape=preset.escape if any(ORDER in word for word in run) else "",
        counts=preset.counts,
        environment=preset.environment,
        isolated=_isolated(table),
        timeout_s=table.number("timeout", timeout_s, 0.1, 7 * DAY_S),
        directory=table.text("directory", ""),
        better=table.text("better", better[0], better),
    )
    try:
        groups = re.compile(suite.names).groups
    except re.error as error:
        raise table.error("names", f"{suite.names!r}: {error}") from None
    if groups != 1:
        raise table.error("names", f"{suite.names!r}: must have exactly one group, which matches the name of a test")
    table.end()
    return suite


def _isolated(table: TomlTable) -> Isolation:
    if isinstance(table.given("isolated"), str):
        table.text("isolated", choices=(BOTH,))
        return "both"
    return "yes" if table.flag("isolated", False) else "no"
