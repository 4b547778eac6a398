"""Detect the kind of a file, without loading its reader."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from quiet import UsageError


def check_ordinary(path: Path) -> None:
    """Raise UsageError unless the path is missing, a directory, or an ordinary file with content.

    Reading a pipe, a device, or a kernel file without a size such as /proc/kmsg may never end.
    """
    try:
        status = path.stat()
    except OSError:
        return  # opening the path reports the reason
    if not stat.S_ISREG(status.st_mode) and not stat.S_ISDIR(status.st_mode):
        raise UsageError(f"{path}: not an ordinary file")
    if stat.S_ISREG(status.st_mode) and not status.st_size:
        raise UsageError(f"{path}: empty file; name a file with content")


def is_store(path: Path) -> bool:
    """Whether the path is an SQLite file. database.for_reading() then checks that the file is a store.

    Raises UsageError as check_ordinary() does.
    """
    check_ordinary(path)
    try:
        with open(path, "rb") as file:
            return file.read(16) == b"SQLite format 3\0"
    except OSError:
        return False


def check_not_lost(output: str, option: str, *inputs: str | os.PathLike[str]) -> None:
    """Raise UsageError if the output file is one of the inputs, lies in an input directory, or is a store.
    `option`: the option that names the output, for the message.
    """
    exists, real = os.path.exists(output), os.path.realpath(output)
    for each in inputs:
        inside = real.startswith(os.path.join(os.path.realpath(each), ""))
        if exists and (inside or (os.path.exists(each) and os.path.samefile(output, each))):
            raise UsageError(f"{option} {output}: is read as input, and would be overwritten; choose another name")
        if inside:
            raise UsageError(f"{option} {output}: lies in {each}, whose files are all read; choose another directory")
    if os.path.isfile(output) and os.path.getsize(output) and is_store(Path(output)):
        raise UsageError(
            f"{option} {output}: is a store (an SQLite file), which would be overwritten; choose another name"
        )
