"""Summarize quiet's changes to the boot configuration. Loads other modules of this package only if a record exists."""

from __future__ import annotations

from typing import NamedTuple

from quiet.errors import QuietError
from quiet.host.lock import BOOT_FILE
from quiet.host.reader import Reader


class BootStatus(NamedTuple):
    """The recorded apply; `time`: seconds since the epoch.

    Every field is None if the record is damaged, from another version of quiet, or readable only by root.
    """

    profile: str | None = None
    cpus: str | None = None
    loader: str | None = None
    state: str | None = None
    time: float | None = None


def status(reader: Reader) -> BootStatus | None:
    """The state of the boot configuration; None if quiet has not changed it."""
    if not reader.exists(BOOT_FILE):
        return None
    from quiet.boot import record as records
    from quiet.boot.loaders.atomic_files import Disk

    try:
        record = records.load(Disk(reader))
    except QuietError:
        record = None
    if record is None:
        return BootStatus()
    return BootStatus(record.profile, record.cpus, record.loader, record.state, record.time)
