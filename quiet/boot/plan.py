"""Plan the files and commands of `quiet boot apply`. Writes nothing."""

from __future__ import annotations

from dataclasses import dataclass

from quiet.boot import record as records
from quiet.boot.loaders import registry
from quiet.boot.loaders.loader import LONGEST, BootFiles, Loader, LoaderContext, Steps, by_hand
from quiet.boot.parameters.cmdline import CommandLine, fill_in
from quiet.boot.parameters.merge import Merged, missing
from quiet.boot.record import APPLIED, BootRecord
from quiet.errors import Refused, UsageError
from quiet.host.reader import Reader
from quiet.machine.cpu_selection import CpuPartition
from quiet.machine.facts import Facts


@dataclass(frozen=True, slots=True)
class BootRequest:
    """A profile's kernel parameters, with placeholders (cmdline.fill_in)."""

    profile: str
    parameters: tuple[str, ...]
    cpus: CpuPartition

    @property
    def source(self) -> str:
        """The profile's key that lists the parameters, for error messages."""
        return f"profile {self.profile}: key 'boot.wanted'"

    def words(self, facts: Facts) -> tuple[str, ...]:
        """The parameters with this host's CPUs in place of the placeholders. Raises UsageError."""
        return tuple(fill_in(self.parameters, self.cpus, facts, self.source))


@dataclass(frozen=True, slots=True)
class FileChange:
    """The current and the wanted content of a file (None: the file does not exist)."""

    path: str
    current: bytes | None
    wanted: bytes | None

    @property
    def diff(self) -> str:
        """A unified diff from the current content to the wanted one."""
        import difflib

        before, after = (_lines(content) for content in (self.current, self.wanted))
        old, new = ("/dev/null" if content is None else self.path for content in (self.current, self.wanted))
        return "".join(difflib.unified_diff(before, after, old, new, n=1))


@dataclass(frozen=True, slots=True)
class BootPlan:
    """The boot loader, its line without quiet's parameters, the merged line, and the steps that produce it.

    `found`: the evidence for the loader; `others`: the names of other detected loaders; `running`: the running kernel's
    command line; `record`: of the earlier apply, None if there was none.
    """

    profile: str
    cpus: CpuPartition
    loader: Loader
    found: str
    others: tuple[str, ...]
    running: str
    in_force: bool  # the running kernel already has every supported parameter
    wanted: tuple[str, ...]
    before: CommandLine
    merged: Merged
    steps: Steps
    files: tuple[FileChange, ...]
    record: BootRecord | None

    @property
    def settled(self) -> bool:
        """Whether apply would change nothing."""
        if self.files:
            return False
        if self.record is None:
            return not self.steps.edits and not self.steps.commands
        return self.record.state == APPLIED and self.record.wanted == self.wanted


def make(reader: Reader, request: BootRequest, loader: str | None = None) -> BootPlan:
    """Read the boot configuration and compare it with the request; `loader`: the value of --loader.

    Raises UsageError for a wrong request; Refused if no boot loader is detected, if its configuration must be changed
    by hand, or if the line would be too long.
    """
    facts = Facts(reader)
    if not request.parameters:
        raise UsageError(
            f"profile {request.profile} sets no kernel parameters; list them in `wanted` of its section [boot]"
        )
    record = load_record(reader)
    wanted = request.words(facts)
    files = BootFiles(reader, record)
    context = LoaderContext(files, facts, wanted)
    if reason := registry.elsewhere(files):
        raise by_hand(reason, context.merged(str(files.running())))
    chosen, evidence, others = registry.detect(files, loader or (record.loader if record else None))
    steps = chosen.steps(context)
    before = chosen.line(context)
    merged = context.merged(str(before))
    if merged.add and len(str(merged.line).encode("utf-8", "surrogateescape")) > LONGEST:
        raise Refused(
            f"the command line would be longer than the {LONGEST} bytes that the kernel reads; give --cpus as "
            "ranges, which are short (2-7), or remove parameters from the profile"
        )
    if not merged.unchanged and not steps.edits and not steps.commands:
        raise by_hand(f"{chosen.title}: no file was found to which the parameters can be added", merged)
    return BootPlan(
        profile=request.profile,
        cpus=request.cpus,
        loader=chosen,
        found=evidence,
        others=others,
        running=facts.command_line,
        in_force=not missing(request.parameters, request.cpus, facts, request.source),
        wanted=wanted,
        before=before,
        merged=merged,
        steps=steps,
        files=tuple(_changes(files, steps, record)),
        record=record,
    )


def _lines(content: bytes | None) -> list[str]:
    return (content or b"").decode("utf-8", "replace").splitlines(keepends=True)


def load_record(reader: Reader) -> BootRecord | None:
    """The record of an earlier apply; None if there is none. Raises UsageError or Refused if it cannot be used."""
    return records.load(BootFiles(reader))


def _changes(files: BootFiles, steps: Steps, record: BootRecord | None) -> list[FileChange]:
    wanted: dict[str, bytes | None] = {edit.path: edit.data for edit in steps.edits}
    for entry in record.files if record else ():
        if record and entry.path not in wanted:
            wanted[entry.path] = record.cleaned(entry.path, files.data(entry.path))
    changes = (FileChange(path, files.data(path), data) for path, data in wanted.items())
    return [change for change in changes if change.current != change.wanted]
