"""Define the base class of resets, which return the host to its initial state before each run, and two resets: NoReset
and CommandReset.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from cbench.study.process.process_tags import RESET, ProcessTags
from cbench.study.process.run_command import Execution, run_checked
from cbench.study.records import StoredFacts
from cbench.study.toml_table import TomlTable
from quiet import QuietError, Reader

SYSTEMD_RUNNING = Path("/run/systemd/system")
"""A directory that exists if systemd is the init process (sd_booted(3))."""


class ResetError(QuietError):
    """Raised if the host could not be reset; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class ResetContext:
    """The directory and the environment in which a reset runs its commands, and the tags of its processes."""

    folder: str
    environment: Mapping[str, str]
    tags: ProcessTags
    reader: Reader = field(default_factory=Reader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """A reset of the host before each run, and the time to wait afterwards.

    To add one, write a class in a separate file and add it to registry.RESETS. `kind`: the name of the reset in a file;
    `keys`: its keys in the file besides kind, timeout and settle; `example`: lines for the example file that explain
    keys. `command`: the user's command; `check`: a command that must succeed after the reset; `unit`: a systemd unit;
    each is "" if not given. `timeout_s`: the time limit, in seconds, of each command and wait of the reset; `settle_s`:
    the time to wait after the reset, in seconds.
    """

    kind: ClassVar[str]
    keys: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[str] = ""
    command: str = ""
    check: str = ""
    unit: str = ""
    timeout_s: float = 600.0
    settle_s: float = 0.0

    @classmethod
    def parse(cls, table: TomlTable, timeout_s: float, settle_s: float) -> Self:
        """Create the reset from its table, whose own keys are among `keys`. Raises UsageError for invalid values."""
        command, check, unit = (table.text(key, "") for key in ("command", "check", "unit"))
        return cls(command=command, check=check, unit=unit, timeout_s=timeout_s, settle_s=settle_s)

    def obstacle(self, environment: Mapping[str, str], reader: Reader) -> str:
        """The reason why the reset can never work on this host, if that can be determined without a reset; otherwise
        "".
        """
        return ""

    def prepare(self) -> None:
        """Prepare the reset; called once, before any run."""

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        """Reset the host before a run, and return the evidence as facts. Raises ResetError or CommandError if that
        fails.
        """
        raise NotImplementedError

    def execute(self, command: str, context: ResetContext, run: int | None = None) -> Execution:
        """Run a command of this reset. `run`: the run of the reset, for the tag of its processes; None for no tag.
        Raises CommandError if the command fails.
        """
        tag = {} if run is None else context.tags.of_step(RESET, run)
        return run_checked(command, context.folder, {**context.environment, **tag}, self.timeout_s)

    def needs(self, key: str, table: TomlTable) -> Self:
        """Check that the field of a required key is not empty; returns the reset itself. Raises UsageError if it is
        empty.
        """
        if not getattr(self, key).strip():
            raise table.error(key, f"is missing: required for a reset of kind {self.kind!r}")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReset(Reset):
    """Leaves the host unchanged."""

    kind: ClassVar[str] = "none"

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReset(Reset):
    """Resets the host by a command of the user; a second command can check the result."""

    kind: ClassVar[str] = "command"
    keys: ClassVar[tuple[str, ...]] = ("command", "check")
    example: ClassVar[str] = """\
# command = "..."         # kind command: the command to run; kind reboot: runs instead of `systemctl reboot`
# check = "..."           # a command that must succeed after the reset
"""

    @classmethod
    def parse(cls, table: TomlTable, timeout_s: float, settle_s: float) -> Self:
        return super(CommandReset, cls).parse(table, timeout_s, settle_s).needs("command", table)

    def perform(self, run: int, context: ResetContext) -> StoredFacts:
        done = self.execute(self.command, context, run)
        if self.check:
            self.execute(self.check, context, run)
        return {"seconds": done.wall_s, "checked": bool(self.check)}
