"""Set, read back and restore the levels that change the host, through quiet or the user's commands.

quiet records the levels that it sets in its journal, so that `quiet restore` works after a kill. Levels set by commands
are recorded next to the store before the commands run, and resuming the experiment restores them first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from cbench.screen.config.model import Level, Screen
from cbench.screen.execute import pending_restores, quiet_levels
from cbench.screen.execute.pending_restores import PendingRestore
from cbench.study.process.run_command import CommandError, run_checked
from quiet import Host, Incomplete, QuietError, Refused, end_hold

Levels = Mapping[str, str]
"""The levels of some factors: factor -> level."""


class Confirmed(NamedTuple):
    """The values read back. `texts`: the value of each factor as text, by its name; `applied`: the settings applied by
    quiet, None if quiet sets no level.
    """

    texts: dict[str, str]
    applied: quiet_levels.Applied | None = None


class LevelMark(NamedTuple):
    """A point to which levels can be restored: the number of levels set by commands, and whether quiet has applied
    settings.
    """

    commands: int = 0
    applied: bool = False


NOTHING = LevelMark()


class HostLevels:
    """The levels that are currently set on the host, in the order in which they were set."""

    def __init__(
        self, screen: Screen, data: Path, identity: str, environment: Mapping[str, str], host: Host | None = None
    ) -> None:
        self._screen, self._environment = screen, environment
        self._file = pending_restores.place(data)
        self._source = f"{quiet_levels.SOURCE}{identity}"
        self._host = host or Host()
        self._set: list[PendingRestore] = []
        self._stuck: list[PendingRestore] = []  # levels that could not be restored
        self._applied = False

    def left_behind(self) -> list[str]:
        """Restore the levels left set by a killed process of this experiment, and return their names; quiet's levels
        count as one name. Raises Refused if their record is damaged, and Incomplete if one cannot be restored.
        """
        self._set = pending_restores.read(
            self._file
        )  # use the recorded commands: the experiment's file may have changed
        names = [each.name for each in self._set]
        if quiet_levels.ours(self._host, self._source):
            names.append(quiet_levels.WHAT)
            self._applied = True
        if names:
            self.restore()
        return names

    def set(self, levels: Levels) -> Confirmed:
        """Set the levels and read them back. If one cannot be set, restore those that this call has set and raise
        Refused, or Incomplete if that fails.
        """
        wanted = [(factor, self._screen.level(factor, name)) for factor, name in levels.items()]
        kept = self.mark
        try:
            confirmed = self._quiet(wanted)
            for factor, level in wanted:
                if level.command:
                    self._set.append(PendingRestore(factor, level.name, level.restore or ""))
                    self._write_down()
                    self._run(f"{factor}={level.name}", level.command, "set")
                confirmed.texts.update(self._checked(factor, level))
        except BaseException:
            self.restore(kept)
            raise
        return confirmed

    def confirm(self, levels: Levels) -> Confirmed:
        """Read back the levels that were set. Raises Refused if one has changed."""
        wanted = [(factor, self._screen.level(factor, name)) for factor, name in levels.items()]
        texts: dict[str, str] = {}
        applied = None
        if ours := [(factor, level) for factor, level in wanted if level.by_quiet]:
            applied = quiet_levels.confirm(self._host, self._source, [level for _, level in ours])
            texts |= {factor: text for (factor, _), text in zip(ours, applied.texts, strict=True)}
        for factor, level in wanted:
            texts |= self._checked(factor, level)
        return Confirmed(texts, applied)

    def restore(self, kept: LevelMark = NOTHING) -> None:
        """Restore the levels that were set after `kept`, in reverse order. Raises Incomplete if that fails."""
        wrong: list[str] = []
        while len(self._set) > kept.commands:
            last = self._set[-1]
            try:
                if last.restore:
                    self._run(last.name, last.restore, "restored")
            except QuietError as error:
                wrong.append(str(error))
                self._stuck.append(last)
            self._set.pop()
        if self._applied and not kept.applied:
            try:
                end_hold(self._host, self._source)
            except QuietError as error:
                wrong.append(str(error))
            self._applied = False
        self._write_down()  # a level that could not be restored stays listed, so that a resume tries again
        if wrong:
            out = [pending_restores.way_out(self._file)] if self._stuck else []
            raise Incomplete("; ".join(wrong + out))

    @property
    def mark(self) -> LevelMark:
        """The mark of the levels that are set now, for restore()."""
        return LevelMark(len(self._set), self._applied)

    def _quiet(self, wanted: Sequence[tuple[str, Level]]) -> Confirmed:
        ours = [(factor, level) for factor, level in wanted if level.by_quiet]
        if not ours:
            return Confirmed({})
        self._applied = True
        try:
            cpus = self._screen.cpus or None
            applied = quiet_levels.apply(self._host, self._source, [level for _, level in ours], cpus)
        except Refused as error:
            names = " ".join(f"{factor}={level.name}" for factor, level in ours)
            raise Refused(f"{names} cannot be set: {error}") from None
        return Confirmed({factor: text for (factor, _), text in zip(ours, applied.texts, strict=True)}, applied)

    def _checked(self, factor: str, level: Level) -> dict[str, str]:
        texts: dict[str, str] = {}
        if level.kernel is not None:
            texts[factor] = self._kernel(factor, level)
        if level.check:
            said = self._run(f"{factor}={level.name}", level.check, "confirmed")
            texts[factor] = said or "its check succeeded"
        elif level.command:
            texts[factor] = "its command succeeded"
        return texts

    def _kernel(self, factor: str, level: Level) -> str:
        """Check that the running kernel's command line has the parameters of this level and no parameters of the
        factor's other levels. Returns the parameters; raises Refused if the check fails.
        """
        words = (self._host.text("/proc/cmdline") or "").split()
        others = {word for each in self._screen.factor(factor).levels for word in each.kernel or ()}
        wanted = set(level.kernel or ())
        if missing := sorted(wanted - set(words)):
            raise Refused(f"{factor}={level.name} cannot be confirmed: the kernel was booted without {missing[0]}")
        if present := sorted((others - wanted) & set(words)):
            raise Refused(f"{factor}={level.name} cannot be confirmed: the kernel was booted with {present[0]}")
        return " ".join(word for word in words if word in wanted) or "none of the parameters"

    def _run(self, name: str, command: str, what: str) -> str:
        try:
            done = run_checked(command, self._screen.folder, self._environment, self._screen.reset.timeout_s)
        except CommandError as error:
            kind = Incomplete if what == "restored" else Refused
            raise kind(f"{name} cannot be {what}: {error}") from None
        lines = done.output.decode(errors="replace").strip().splitlines()
        return lines[-1][:200] if lines else ""

    def _write_down(self) -> None:
        """Write the record of levels set by commands to disk, including those that could not be restored."""
        pending_restores.write(self._file, [*self._stuck, *self._set])
