"""What `quiet boot apply` would write and run. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from quiet.boot import record
from quiet.boot.loaders import registry
from quiet.boot.loaders.loader import LONGEST, BootFiles, Loader, LoaderContext, Steps, by_hand
from quiet.boot.parameters import placeholders
from quiet.boot.parameters.cmdline import CommandLine
from quiet.boot.parameters.merge import Merged
from quiet.boot.record import APPLIED, BootRecord
from quiet.errors import Refused, UsageError
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts
from quiet.settings.profile import Profile


@dataclass(frozen=True, slots=True)
class FileChange:
    """A file as it is and as it is to be (None: not there)."""

    path: str
    current: bytes | None
    wanted: bytes | None


@dataclass(frozen=True, slots=True)
class BootPlan:
    """The loader, the line it holds without us, the merged one, and the steps from here to there."""

    profile: str
    cpus: CpuPartition
    loader: Loader
    found: str
    others: tuple[str, ...]
    running: str
    in_force: bool  # the running kernel was started with all of it
    wanted: tuple[str, ...]
    before: CommandLine
    merged: Merged
    steps: Steps
    files: tuple[FileChange, ...]
    record: BootRecord | None

    @property
    def settled(self) -> bool:
        """Whether everything is as apply would make it."""
        if self.files:
            return False
        if self.record is None:
            return not self.steps.edits and not self.steps.commands
        return self.record.state == APPLIED and self.record.wanted == self.wanted


def make(reader: Reader, profile: Profile, cpus: str | None, loader: str | None = None) -> BootPlan:
    """Look and compare. Raises UsageError for a wrong wish, Refused when there is no boot loader or no CPU left."""
    facts = Facts(reader)
    if not profile.boot:
        raise UsageError(f"profile {profile.name}: wants nothing of the command line; see its [boot] wanted")
    known = load_record(reader)
    choice = profile.choose(facts, cpus)
    wanted = tuple(placeholders.words(profile.boot, choice, f"profile {profile.name}: key 'boot.wanted'"))
    files = BootFiles(reader, known)
    if reason := registry.elsewhere(files):
        raise by_hand(reason, LoaderContext(files, facts, wanted).merged(str(files.running())))
    kind, found, others = registry.detect(files, loader or (known.loader if known else None))
    scene = LoaderContext(files, facts, wanted)
    steps = kind.steps(scene)
    before = kind.line(scene)
    merged = scene.merged(str(before))
    if merged.add and len(str(merged.line).encode("utf-8", "surrogateescape")) > LONGEST:
        raise Refused(
            f"the command line would be longer than the {LONGEST} bytes that the kernel reads; give --cpus as ranges, "
            "which are short (2-7), or take words out of it"
        )
    if (merged.add or merged.drop) and not steps.edits and not steps.commands:
        raise by_hand(f"{kind.title}: no file that takes the words was found", merged)
    changes = tuple(_changes(files, steps, known))
    in_force = not profile.missing_boot(facts, choice)
    return BootPlan(
        profile.name,
        choice,
        kind,
        found,
        others,
        facts.command_line,
        in_force,
        wanted,
        before,
        merged,
        steps,
        changes,
        known,
    )


def load_record(reader: Reader) -> BootRecord | None:
    """The record of an earlier apply."""
    return record.load(BootFiles(reader))


def _changes(files: BootFiles, steps: Steps, known: BootRecord | None) -> list[FileChange]:
    wanted: dict[str, bytes | None] = {edit.path: edit.data for edit in steps.edits}
    for entry in known.files if known else ():
        if entry.path not in wanted:
            saved = files.load(entry.path)
            wanted[entry.path] = known.cleaned(entry.path, saved.data if saved else None) if known else None
    found = []
    for path, data in wanted.items():
        saved = files.load(path)
        current = saved.data if saved else None
        if current != data:
            found.append(FileChange(path, current, data))
    return found
