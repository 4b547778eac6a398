"""Apply a boot plan, or remove an applied one. Changes are recorded first; then each file is replaced atomically."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass

from quiet import cpulist
from quiet.boot import record as records
from quiet.boot.loaders.atomic_files import Disk
from quiet.boot.loaders.loader import BEGIN, BootFiles, Command, Edit, Loader, encode, without_block
from quiet.boot.loaders.registry import LOADERS
from quiet.boot.plan import BootPlan, BootRequest, load_record, make
from quiet.boot.record import APPLIED, REMOVING, THERE, BootRecord, FileEntry
from quiet.errors import Incomplete, Refused
from quiet.host.host import Host
from quiet.host.lock import BOOT_FILE, HOME, locked

_GENERATED = "generated"


@dataclass(frozen=True, slots=True)
class BootReceipt:
    """The result of an apply or a remove. `not_run`: commands that were not run because the tree is a recording.

    `plan`: None after a remove; `record`: None if the host had no record.
    """

    files: tuple[str, ...] = ()
    ran: tuple[Command, ...] = ()
    not_run: tuple[Command, ...] = ()
    conflicts: tuple[tuple[str, str], ...] = ()  # (path, resolution)
    plan: BootPlan | None = None
    record: BootRecord | None = None


def apply(host: Host, request: BootRequest, loader: str | None = None) -> BootReceipt:
    """Set the next boot's command line. Idempotent.

    Raises UsageError for a wrong request. Raises Refused if the boot configuration cannot be changed, or if a write or
    command fails and every file was restored to its state before the first apply. Raises Incomplete if the boot
    configuration may still contain parameters of this or an earlier apply.
    """
    make(host, request, loader)  # a wrong request is reported before the lock is taken
    with locked(host):
        plan = make(host, request, loader)
        disk = Disk(host)
        if plan.settled:
            return BootReceipt(plan=plan, record=plan.record)
        first = _first_states(disk, plan)
        earlier = plan.record
        try:
            if earlier:
                _take_out(host, disk, earlier, last=False)
                plan = make(host, request, loader)
            record = _begin(disk, plan, first)
        except OSError as error:
            reason = f"{error.filename}: {_reason(error)}" if error.filename else _reason(error)
            if earlier:
                raise Incomplete(
                    f"{reason}; the earlier parameters are partly removed: correct this, then run `quiet boot remove`"
                ) from None
            raise Refused(f"{reason}; nothing was changed") from None
        try:
            for edit in plan.steps.edits:
                _write(disk, edit)
            ran, not_run = _run(host, plan.steps.commands)
        except OSError as error:
            # the files do not include the output of the earlier apply's commands, so the record is still needed
            needed = bool(earlier and earlier.files and record.commands and not record.generated)
            try:
                _back(disk, record, forget=not needed)
            except OSError as second:
                raise Incomplete(
                    f"{_reason(error)}; restoring the files failed too: {_reason(second)}; correct this, then run "
                    "`quiet boot remove`"
                ) from None
            if needed:
                raise Incomplete(
                    f"{_reason(error)}; every file was restored, but the boot loader may still have the earlier "
                    "parameters: correct this, then run `quiet boot remove`"
                ) from None
            again = "; the earlier parameters were removed: apply them again" if earlier else ""
            raise Refused(f"{_reason(error)}; every file was restored{again}") from None
        for entry in record.generated:
            entry.after = disk.data(entry.path)
        record.state = APPLIED
        records.store(disk, record)
        return BootReceipt(tuple(change.path for change in plan.files), ran, not_run, plan=plan, record=record)


def _write(disk: Disk, edit: Edit) -> None:
    try:
        disk.make_folders(edit.path)
        disk.save(edit.path, edit.data, disk.load(edit.path))
    except OSError as error:
        raise OSError(error.errno, f"{edit.path}: {_reason(error)}") from None


def _first_states(disk: Disk, plan: BootPlan) -> dict[str, FileEntry]:
    """The recorded generated files, by path, that no other program has changed since the earlier apply.

    The new record keeps their `before`. `after` is None if an apply was killed before it recorded the new content; such
    a file counts as unchanged.
    """
    known = plan.record.generated if plan.record else []
    return {entry.path: entry for entry in known if entry.after in (None, disk.data(entry.path))}


def _begin(disk: Disk, plan: BootPlan, first: dict[str, FileEntry]) -> BootRecord:
    record = BootRecord(
        plan.loader.name,
        plan.profile,
        cpulist.format(plan.cpus.isolated),
        plan.wanted,
        plan.steps.add or plan.merged.add,
        plan.steps.drop or plan.merged.drop,
        time.time(),
        commands=plan.steps.commands,
        undo=plan.steps.undo,
    )
    record.folders = disk.missing_folders(f"{HOME}/x")
    for edit in plan.steps.edits:
        record.files.append(FileEntry(edit.path, edit.how, disk.load(edit.path), edit.data))
        record.folders += [path for path in disk.missing_folders(edit.path) if path not in record.folders]
    listed = plan.loader.entries if plan.steps.edits else None
    for path in listed(BootFiles(disk.reader)) if listed else ():
        if path not in {entry.path for entry in record.files}:
            record.files.append(FileEntry(path, THERE, disk.load(path), None))
    for path in plan.steps.generated:
        before = first[path].before if path in first else disk.load(path)
        record.generated.append(FileEntry(path, _GENERATED, before, None))
    if plan.record:
        record.folders = list(dict.fromkeys((*plan.record.folders, *record.folders)))
    records.store(disk, record)
    return record


def _back(disk: Disk, record: BootRecord, forget: bool) -> None:
    """Restore all recorded files to their state in the record, after a failed write or command. `forget`: remove the
    record too.
    """
    for entry in (*record.files, *record.generated):
        if entry.how == THERE:
            continue
        disk.clean(entry.path)
        if disk.data(entry.path) != (entry.before.data if entry.before else None):
            disk.restore(entry.path, entry.before)
    if forget:
        records.forget(disk, record)


def remove(host: Host) -> BootReceipt:
    """Restore the boot configuration. Raises UsageError for a damaged record, Incomplete if the restore failed."""
    disk = Disk(host)
    if load_record(host) is None and not disk.torn(BOOT_FILE):
        return _unrecorded(host, disk)
    with locked(host):
        known = load_record(host)
        try:
            if known:
                return _take_out(host, disk, known, last=True)
            records.sweep(disk)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise Incomplete(f"{where}{_reason(error)}; correct this, then run `quiet boot remove` again") from None
        return BootReceipt()


def _unrecorded(host: Host, disk: Disk) -> BootReceipt:
    """On a host whose record was deleted, remove quiet's marked blocks and regenerate the boot loader's configuration.

    Raises Incomplete if a write or the command fails.
    """
    files = BootFiles(host)
    for loader in LOADERS:
        ours = [path for path in loader.marked if BEGIN in (files.text(path) or "")]
        if not ours or loader.regenerate is None:
            continue
        with locked(host):
            command = loader.regenerate(files)
            then = f"run `{shlex.join(command)}`"
            try:
                for path in ours:
                    rest = without_block(files.text(path) or "")
                    if rest.strip():
                        disk.save(path, encode(rest), disk.load(path))
                    else:
                        disk.remove(path)
            except OSError as error:
                where = f"{error.filename}: " if error.filename else ""
                raise Incomplete(
                    f"{where}{_reason(error)}; correct this, run `quiet boot remove` again, then {then}"
                ) from None
            try:
                ran, not_run = _run(host, (command,))
            except OSError as error:
                raise Incomplete(
                    f"{_reason(error)}; quiet's parameters were removed from {', '.join(ours)}; "
                    f"correct this, then {then}"
                ) from None
            return BootReceipt(tuple(ours), ran, not_run)
    return BootReceipt()


def _take_out(host: Host, disk: Disk, known: BootRecord, last: bool) -> BootReceipt:
    """Restore the files, then run the loader's undo commands and delete the record.

    With `last` False, an apply follows and runs its own commands. The record then stays, and undo commands run only for
    a loader that changes no files. Raises OSError if a write fails or, with `last` False, if a command fails. Raises
    Incomplete if a command fails and parameters may remain.
    """
    if last and known.state == APPLIED:
        known.state = REMOVING
        records.store(disk, known)
    # `after` is None if the apply was killed before it recorded the new content
    untouched = {entry.path for entry in known.generated if entry.after and entry.after == disk.data(entry.path)}
    changed, conflicts = _files_back(disk, known)
    conflicts += _later_entries(disk, known)
    if not last:
        if known.commands and not known.files:
            _run(host, known.undo)  # a loader that changes no files is undone by its command
        return BootReceipt(changed)
    failure = None
    again = _loader(known).again
    undo = again(BootFiles(host)) if again else known.undo  # kernels may have been installed or removed
    ran, not_run = (undo, ()) if host.live else ((), undo)
    try:
        _run(host, undo)
    except OSError as error:
        failure, ran = error, ()
    generated = _generated_back(disk, known, untouched, failure)
    if failure and (len(undo) > 1 or not known.generated):
        raise Incomplete(f"{_reason(failure)}; correct this, then run `quiet boot remove` again")
    records.forget(disk, known)
    return BootReceipt(changed, ran, not_run, (*conflicts, *generated), record=known)


def _files_back(disk: Disk, known: BootRecord) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Restore the recorded files. Returns the paths of those that differed from their original state.

    Also returns the conflicts, (path, resolution): files that another program changed after the apply.
    """
    changed, conflicts = [], []
    for entry in known.files:
        if entry.how == THERE:
            continue
        disk.clean(entry.path)
        now = disk.data(entry.path)
        if now == (entry.before.data if entry.before else None):
            continue
        if now == entry.after:
            disk.restore(entry.path, entry.before)
        else:
            conflicts.append((entry.path, _less_ours(disk, known, entry)))
        changed.append(entry.path)
    return tuple(changed), tuple(conflicts)


def _later_entries(disk: Disk, known: BootRecord) -> tuple[tuple[str, str], ...]:
    """Remove quiet's parameters from entries that were generated, with these parameters, for kernels installed later.

    Returns each changed path with a sentence for the user.
    """
    listed = _loader(known).entries
    files = BootFiles(disk.reader)
    changed = []
    for path in listed(files) if listed and known.files else ():
        saved = disk.load(path)
        if saved is None or path in {entry.path for entry in known.files}:
            continue
        rest = known.without(saved.data)
        if rest != saved.data:
            disk.clean(path)
            disk.save(path, rest, saved)
            changed.append((path, "it was created after the apply, with quiet's parameters: only these were removed"))
    return tuple(changed)


def _loader(known: BootRecord) -> Loader:
    return next(loader for loader in LOADERS if loader.name == known.loader)


def _generated_back(
    disk: Disk, known: BootRecord, untouched: set[str], failure: OSError | None
) -> tuple[tuple[str, str], ...]:
    """Restore regenerated files, including their times, if only quiet has changed them. Returns the other files as
    conflicts: (path, resolution).

    Raises Incomplete if a command failed and a file still has quiet's parameters.
    """
    conflicts = []
    for entry in known.generated:
        now, before = disk.load(entry.path), entry.before
        disk.clean(entry.path)
        if now and before and (now.data, now.mtime_ns) == (before.data, before.mtime_ns):
            continue
        if (now and now.data) == (before and before.data) or entry.path in untouched:
            disk.restore(entry.path, before)
        elif now is None:
            conflicts.append((entry.path, "it was deleted after the apply; it stays deleted"))
        elif failure:
            raise Incomplete(
                f"{_reason(failure)}; {entry.path} still has the parameters; correct this, then run `quiet boot remove`"
            )
        else:
            conflicts.append((entry.path, "regenerated; it was changed after the apply and differs from the original"))
    return tuple(conflicts)


def _less_ours(disk: Disk, known: BootRecord, entry: FileEntry) -> str:
    saved = disk.load(entry.path)
    if saved is None:
        return "it was deleted after the apply; it stays deleted"
    rest = known.cleaned(entry.path, saved.data)
    if rest is None:
        disk.remove(entry.path)
        return "it was changed after the apply; it contained only quiet's part and was deleted"
    if rest == saved.data:
        return "quiet's part was already removed; left unchanged"
    disk.save(entry.path, rest, saved)
    return "it was changed after the apply; only quiet's part was removed"


def _run(host: Host, commands: tuple[Command, ...]) -> tuple[tuple[Command, ...], tuple[Command, ...]]:
    if not host.live:
        return (), commands
    for command in commands:
        host.run(*command)
    return commands, ()


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
