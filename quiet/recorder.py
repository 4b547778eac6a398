"""Record a machine: every file that facts and plan read, as a tree for --root. What is not read is not recorded."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import time

from quiet import shapes, targets
from quiet.choose import Choice
from quiet.errors import QuietError, UsageError
from quiet.facts import Facts
from quiet.host import Reader
from quiet.knob import Scene
from quiet.knobs import KNOBS
from quiet.profile import bundled, load


class Recording(Reader):
    """A reader that remembers what it was asked for, and the answers."""

    def __init__(self, root: str = "/") -> None:
        super().__init__(root)
        self.files: dict[str, tuple[str, int]] = {}
        self.folders: set[str] = set()

    def text(self, path: str) -> str | None:
        """As Reader.text, remembered with the file's mode."""
        found = super().text(path)
        if found is not None:
            with contextlib.suppress(OSError):  # it went away just now: tasks do
                self.files[path] = (found, os.stat(self.root + path).st_mode & 0o777)
        return found

    def exists(self, path: str) -> bool:
        """As Reader.exists; a folder is remembered as one, a file with its content."""
        found = super().exists(path)
        if found and os.path.isdir(self.root + path):
            self.folders.add(path)
        elif found and path not in self.files:
            self.text(path)
        return found


def record(reader: Recording, file: str) -> int:
    """Write a tree (gzip'd tar) of everything that status and plan read on this host; returns the number of files."""
    facts = Facts(reader)
    shapes.status(facts, None)
    _ask_every_knob(facts)
    try:
        with tarfile.open(file, "x:gz") as tar:
            for path in sorted(reader.folders - set(reader.files)):
                entry = tarfile.TarInfo(path.lstrip("/"))
                entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, int(time.time())
                tar.addfile(entry)
            for path, (text, mode) in sorted(reader.files.items()):
                data = text.encode("utf-8", "surrogateescape") + b"\n"
                entry = tarfile.TarInfo(path.lstrip("/"))
                entry.size, entry.mode, entry.mtime = len(data), mode | 0o400, int(time.time())
                tar.addfile(entry, io.BytesIO(data))
    except FileExistsError:
        raise UsageError(f"{file}: exists already; give another name") from None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    return len(reader.files)


def _ask_every_knob(facts: Facts) -> None:
    """Let every rule look with every choice, on the CPUs that each bundled profile would choose."""
    for name in bundled():
        profile = load(name)
        try:
            chosen = profile.choose(facts)
        except QuietError:
            chosen = Choice(frozenset(), facts.online, frozenset(), "nothing can be isolated here")
        for knob in KNOBS:
            for choice in (*knob.choices, *(["1"] if knob.numeric else [])):
                scene = Scene(facts, chosen, choice)
                for item in knob.rule(scene):
                    targets.get(facts.reader, item.target)
                for target in knob.entangled(scene):
                    if target.startswith("file:"):
                        facts.reader.text(target[5:])
