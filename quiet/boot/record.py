"""Keep the record of boot changes, written before any change: whole files with modes, owners and times.

The record is one JSON file that survives reboots. It is replaced atomically and fsync'd at each step, so that `remove`
can restore the original state even if an apply is killed.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from quiet import __version__
from quiet.boot.loaders.atomic_files import Disk, Saved
from quiet.boot.loaders.loader import BEGIN, BLOCK, OWN, WORDS, Command, without_block
from quiet.errors import UsageError
from quiet.host.lock import BOOT_FILE, HOME

_TRIES = re.compile(r"\+\d+(-\d+)?(?=\.conf$)")
APPLYING, APPLIED, REMOVING = "applying", "applied", "removing"
THERE = "there"  # an entry that existed at the time of the apply and needed no change
_FORMAT = 1
# the record's fields, grouped by their JSON form
_PLAIN, _WORDS = ("loader", "profile", "cpus", "time", "state", "folders"), ("wanted", "add", "drop")
_COMMANDS, _FILES = ("commands", "undo"), ("files", "generated")


@dataclass(slots=True)
class FileEntry:
    """One file. `how`: quiet's part of it, as in Edit, or "generated" or THERE. `before`: its original state.

    `after`: its content after the apply; None if quiet did not change it, or if a command generated it and the new
    content was not recorded.
    """

    path: str
    how: str
    before: Saved | None
    after: bytes | None


@dataclass(slots=True)
class BootRecord:
    """All data that `remove` needs.

    `cpus`: the isolated CPUs; `time`: seconds since the epoch; `generated`: files that the loader's own commands write.
    """

    loader: str
    profile: str
    cpus: str
    wanted: tuple[str, ...]
    add: tuple[str, ...]
    drop: tuple[str, ...]
    time: float
    state: str = APPLYING
    files: list[FileEntry] = field(default_factory=list)
    generated: list[FileEntry] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    commands: tuple[Command, ...] = ()
    undo: tuple[Command, ...] = ()

    def cleaned(self, path: str, data: bytes | None) -> bytes | None:
        """A file's content without our changes: the original one, or the current one without our part; None if no file
        would remain.
        """
        entry = next((item for item in (*self.files, *self.generated) if item.path == path), None)
        if entry is None or entry.how == THERE:
            return data
        before = entry.before.data if entry.before else None
        if data in (before, entry.after):
            return before
        return None if data is None else self._without_ours(entry, data)

    def _without_ours(self, entry: FileEntry, data: bytes) -> bytes | None:
        text = data.decode("utf-8", "surrogateescape")
        if entry.how == BLOCK or (entry.how == OWN and BEGIN in text):
            text = without_block(text)
        else:
            pairs = self._pairs(entry) or [_Pair("", "", self.add, self.drop)]
            text = _text_without(text, pairs)
        return None if entry.how == OWN and not text.strip() else text.encode("utf-8", "surrogateescape")

    def without(self, data: bytes) -> bytes:
        """The content of a file that was generated from a file that quiet changed, without quiet's parameters.

        A line changes only if it contains all parameters that quiet added to one line of the original file.
        """
        # kernel-install generates entries from its own file, so the parameters of that file are tried first
        known = sorted(self.files, key=lambda entry: entry.path.endswith(".conf"))
        pairs = [pair for entry in known if entry.how in (OWN, WORDS) for pair in self._pairs(entry) if pair.add]
        lines = []
        for line in data.decode("utf-8", "surrogateescape").splitlines(keepends=True):
            whole = [pair for pair in pairs if all(_has(line, word) for word in pair.add)]
            lines.append(_line_without(line, whole[:1]))
        return "".join(lines).encode("utf-8", "surrogateescape")

    def _pairs(self, entry: FileEntry) -> list[_Pair]:
        """The original and changed lines, with the added and removed words; empty if no line has added words."""
        after = (entry.after or b"").decode("utf-8", "surrogateescape").splitlines()
        before = (entry.before.data if entry.before else b"").decode("utf-8", "surrogateescape").splitlines()
        pairs = []
        for old, new in zip(before if len(before) == len(after) else [""] * len(after), after, strict=True):
            add = tuple(word for word in self.add if _has(new, word) and not _has(old, word))
            drop = tuple(word for word in self.drop if (_has(old, word) or not old) and not _has(new, word))
            pairs.append(_Pair(old, new, add, drop))
        return pairs if any(pair.add for pair in pairs) else []


class _Pair(NamedTuple):
    """An original line, the line as quiet changed it, and the words that differ."""

    old: str
    new: str
    add: tuple[str, ...]
    drop: tuple[str, ...]


def _whole(word: str) -> str:
    return rf"""(^|[\s"'])[ ]?(?<![^\s"']){re.escape(word)}(?![^\s"'])"""


def _has(line: str, word: str) -> bool:
    return bool(re.search(_whole(word), line))


def _text_without(text: str, pairs: list[_Pair]) -> str:
    """Restore the original text of each line that is unchanged since our edit; remove our parameters from other lines.

    Equal lines are matched in order.
    """
    left, lines = list(pairs), []
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        same = next((pair for pair in left if pair.new and pair.new == bare), None)
        if same:
            left.remove(same)
        lines.append(same.old + line[len(bare) :] if same else _line_without(line, pairs))
    return "".join(lines)


def _line_without(line: str, pairs: list[_Pair]) -> str:
    """A line without our parameters and with the removed ones restored, based on the most similar recorded line."""
    ours = [pair for pair in pairs if any(_has(line, word) for word in pair.add)]
    if not ours:
        return line
    words = set(line.split())
    pair = max(ours, key=lambda item: len(words & set(item.new.split())))
    away = "".join(f" {word}" for word in pair.drop)
    for word in pair.add:
        if at := re.search(_whole(word), line):
            instead, away = away, ""
            line = line[: at.start()] + at[1].rstrip(" ") + instead + line[at.end() :]
    return line


def load(disk: Disk) -> BootRecord | None:
    """Read the record; None if quiet has not changed the boot configuration.

    Raises UsageError if the record is damaged or of another version, Refused if it cannot be read.
    """
    import json

    saved = disk.load(BOOT_FILE)
    if saved is None:
        return None
    try:
        data = json.loads(saved.data)
        if data["format"] != _FORMAT:
            raise UsageError(
                f"{BOOT_FILE}: written by another version of quiet ({data['version']}); run `quiet boot remove` with "
                "that version"
            )
        fields: dict[str, Any] = {name: data[name] for name in _PLAIN}
        fields |= {name: tuple(data[name]) for name in _WORDS}
        fields |= {name: tuple(tuple(words) for words in data[name]) for name in _COMMANDS}
        fields |= {name: [_read(item, disk) for item in data[name]] for name in _FILES}
        return BootRecord(**fields)
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f"{BOOT_FILE}: damaged; repair it, or move it away and remove the boot parameters by hand"
        ) from None


def store(disk: Disk, record: BootRecord) -> None:
    """Write the record and flush it to disk."""
    import json

    data: dict[str, Any] = {
        "format": _FORMAT,
        "version": __version__,
        **{name: getattr(record, name) for name in (*_PLAIN, *_WORDS, *_COMMANDS)},
        **{name: [_written(item) for item in getattr(record, name)] for name in _FILES},
    }
    # readable by all users only if every recorded file is: `plan` needs no root, but a grub.cfg may contain a password
    originals = [entry.before for entry in (*record.files, *record.generated) if entry.before]
    private = Saved(b"", 0o644 if all(saved.mode & 0o004 for saved in originals) else 0o600, 0, 0, 0, 0)
    disk.make_folders(BOOT_FILE)
    disk.save(BOOT_FILE, json.dumps(data, indent=1).encode() + b"\n", private)


def forget(disk: Disk, record: BootRecord) -> None:
    """Delete the record, because the boot configuration no longer contains our changes."""
    disk.remove(BOOT_FILE)
    disk.clean(BOOT_FILE)
    for folder in reversed(record.folders):
        disk.remove_folder(folder)


def sweep(disk: Disk) -> None:
    """Remove the temporary file of an apply that was killed during its first write; no other file had changed."""
    disk.clean(BOOT_FILE)
    disk.remove_folder(HOME)


def _written(entry: FileEntry) -> dict[str, Any]:
    before: Any = None
    if entry.before:
        saved = entry.before
        before = [_text(saved.data), saved.mode, saved.uid, saved.gid, saved.atime_ns, saved.mtime_ns]
    return {"path": entry.path, "how": entry.how, "before": before, "after": _text(entry.after)}


def _read(item: Any, disk: Disk) -> FileEntry:
    before = Saved(_bytes(item["before"][0]) or b"", *item["before"][1:]) if item["before"] else None
    return FileEntry(_counted(item["path"], disk), item["how"], before, _bytes(item["after"]))


def _counted(path: str, disk: Disk) -> str:
    """The current path of a loader entry.

    systemd-boot counts boot attempts in the name, so "x+3.conf" becomes "x+2-1.conf" or "x.conf".
    """
    stem = _TRIES.sub("", path)
    if stem == path or disk.load(path) is not None:
        return path
    return next((other for other in disk.beside(path) if _TRIES.sub("", other) == stem), path)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
