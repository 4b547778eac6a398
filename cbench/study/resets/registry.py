"""Register the kinds of reset."""

from __future__ import annotations

from cbench.study.resets.caches import CachesReset
from cbench.study.resets.cool_down import CoolDownReset
from cbench.study.resets.processes import ProcessesReset
from cbench.study.resets.reboot import RebootReset
from cbench.study.resets.reset import CommandReset, NoReset, Reset
from cbench.study.resets.service import ServiceReset
from cbench.study.toml_table import TomlTable

RESETS: tuple[type[Reset], ...] = (
    *(NoReset, CommandReset, ServiceReset, CachesReset, CoolDownReset, ProcessesReset, RebootReset),
)
MOST_S = 86_400.0
EXAMPLE = (
    'kind = "none"             # or ' + ", ".join(each.kind for each in RESETS if each is not NoReset) + "\n",
    "".join(each.example for each in RESETS),
)
"""Lines for an example file: the kinds of reset, and the keys of each kind."""


def parse(table: TomlTable) -> Reset:
    """The reset that a table describes. Raises UsageError if the table is invalid."""
    by_kind = {each.kind: each for each in RESETS}
    kind = by_kind[table.text("kind", NoReset.kind, tuple(by_kind))]
    for key in dict.fromkeys(key for each in RESETS for key in each.keys):
        if table.has(key) and key not in kind.keys:
            others = ", ".join(each.kind for each in RESETS if key in each.keys)
            raise table.error(key, f"does not apply to a reset of kind {kind.kind!r}, only to {others}")
    timeout_s, settle_s = table.number("timeout", 600.0, 0.1, MOST_S), table.number("settle", 0.0, 0, MOST_S)
    made = kind.parse(table, timeout_s, settle_s)
    table.end()
    return made
