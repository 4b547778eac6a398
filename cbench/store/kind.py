"""What kind of file it is, without loading what opens it."""

from __future__ import annotations

from pathlib import Path


def is_store(path: Path) -> bool:
    """Whether this is a file of SQLite's; database.for_reading() says whether it is a store."""
    try:
        with open(path, "rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False
