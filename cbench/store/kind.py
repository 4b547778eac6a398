"""What kind of file it is, without loading what opens it."""

from __future__ import annotations

from pathlib import Path

from quiet import UsageError


def check_ordinary(path: Path) -> None:
    """Raises UsageError for what is neither a file nor a directory: reading a pipe or a device may never end."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(f"{path}: not an ordinary file")


def is_store(path: Path) -> bool:
    """Whether this is a file of SQLite's; database.for_reading() says whether it is a store.

    Raises UsageError for a pipe, which would be waited for, or a device.
    """
    check_ordinary(path)
    try:
        with open(path, "rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False
