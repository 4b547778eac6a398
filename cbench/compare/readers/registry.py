"""The formats that `cbench compare` reads."""

from __future__ import annotations

from pathlib import Path

from cbench.compare.readers.pyperf import PyperfReader
from cbench.compare.readers.reader import ResultReader, TestSample
from cbench.compare.readers.store import StoreReader
from quiet import UsageError

READERS: tuple[ResultReader, ...] = (StoreReader(), PyperfReader())


def read(path: Path) -> tuple[TestSample, ...]:
    """The tests in a file. Raises UsageError for a format that is not known."""
    if path.is_dir():
        raise UsageError(f"{path}: is a directory, not a file")
    if not path.is_file():  # a pipe, which would be waited for, or a device
        raise UsageError(f"{path}: not an ordinary file")
    reader = next((each for each in READERS if each.matches(path)), None)
    if reader is None:
        raise UsageError(f"{path}: neither {' nor '.join(each.name for each in READERS)}")
    return reader.read(path)
