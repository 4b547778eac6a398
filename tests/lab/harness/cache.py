"""The lab's cache, outside the checkout: entries are never partial, and never created twice at once."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

DAY_S = 86_400


def cache_dir() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "quiet-lab"


def make(final: Path, build: Callable[[Path], None], keep: int = 0) -> Path:
    """The directory `final`; where it is not there, `build` fills one beside it, which is then renamed.

    Other processes that need a directory of the same parent wait: a build must not need one of its siblings. Of
    these, the latest `keep` stay (0: all), and whatever was wanted within a day: others may wait to use it.
    """
    if final.is_dir():
        os.utime(final)  # when it was last wanted
        return final
    final.parent.mkdir(parents=True, exist_ok=True)
    with open(final.parent / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not final.is_dir():
            with tempfile.TemporaryDirectory(prefix=".make-", dir=final.parent) as temporary:
                made = Path(temporary) / final.name
                made.mkdir()
                build(made)
                made.rename(final)
            if keep:
                _forget(final.parent, keep)
    return final


def _forget(folder: Path, keep: int) -> None:
    made = [path for path in folder.iterdir() if not path.name.startswith(".")]
    for path in sorted(made, key=lambda path: path.stat().st_mtime)[:-keep]:
        if time.time() - path.stat().st_mtime > DAY_S:
            shutil.rmtree(path, ignore_errors=True)


def digest(parts: Iterable[str | bytes | Path]) -> str:
    """16 hexadecimal digits for texts and the names and contents of files, in this order."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode() if isinstance(part, str) else part
        name = str(part) if isinstance(part, Path) else ""
        whole.update(f"{len(name)} {len(data)} {name}".encode() + data)
    return whole.hexdigest()[:16]
