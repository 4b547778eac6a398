"""Reset by a command of the user's: none, or one and another that checks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from cbench.study.records import StoredFacts
from cbench.study.resets.reset import Reset, ResetContext
from cbench.toml_table import TomlTable


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReset(Reset):
    """The host stays as it is."""

    kind: ClassVar[str] = "none"

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReset(Reset):
    """A command of the user's, and one that checks it."""

    kind: ClassVar[str] = "command"
    keys: ClassVar[tuple[str, ...]] = ("command", "check")
    example: ClassVar[str] = """\
# command = "..."         # kind command: what to run; kind reboot: in place of `systemctl reboot`
# check = "..."           # a command that has to succeed afterwards
"""

    @classmethod
    def parse(cls, table: TomlTable, timeout_s: float, settle_s: float) -> Self:
        return super(CommandReset, cls).parse(table, timeout_s, settle_s).needs("command", table)

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        done = self.execute(self.command, context, run)
        if self.check:
            self.execute(self.check, context, run)
        return {"seconds": done.wall_s, "checked": bool(self.check)}
