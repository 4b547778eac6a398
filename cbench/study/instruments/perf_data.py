"""Count the samples in a file of `perf record`.

Sources: tools/perf/Documentation/perf.data-file-format.txt of Linux for the file's format; perf_event_open(2) for its
records.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path

LITTLE, BIG = b"PERFILE2", b"2ELIFREP"
HEADER = 104
"""The size of the header in bytes; in a file that perf has written to a pipe, it is 16."""
ATTRIBUTES = 24
"""The offset in the header of two pairs of numbers: the position and size of the events' attributes, then the position
and size of the records.
"""
EXCLUDE_KERNEL = 1 << 5
LOST, THROTTLE, SAMPLE, LOST_SAMPLES, AUX_DATA, COMPRESSED = 2, 5, 9, 13, 71, (81, 83)
"""The kinds of records. An AUX_DATA record states a number of bytes, which follow and are not records."""


class NoSamples(Exception):
    """Raised if the samples in a file cannot be counted; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The counts in a file of `perf record`. `samples`: records of the kind PERF_RECORD_SAMPLE, of all events. `lost`:
    records that the kernel reports as lost. `throttled`: the number of times the kernel paused sampling because it took
    too much time. `event`: type and config of the first event, as in perf_event_open(2). `user_only`: whether only user
    mode was sampled.
    """

    samples: int
    lost: int
    throttled: int
    event: tuple[int, int]
    user_only: bool


def count(path: Path) -> Samples:
    """Count the samples in the file. Raises NoSamples if it is unreadable, not a perf.data file, or incomplete."""
    try:
        with path.open("rb") as file:
            head = file.read(HEADER)
            order = {LITTLE: "<", BIG: ">"}.get(head[:8])
            if order is None:
                raise NoSamples(f"{path}: is not a file of `perf record`")
            if len(head) < HEADER or struct.unpack_from(f"{order}Q", head, 8)[0] != HEADER:
                raise NoSamples(f"{path}: was written to a pipe, or by an unknown version of perf")
            attributes, offset, size = struct.unpack_from(f"{order}Q8xQQ", head, ATTRIBUTES)
            if not size:
                raise NoSamples(f"{path}: is incomplete: `perf record` ended before it finished the file")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
                kind, config, flags = struct.unpack_from(f"{order}I4xQ24xQ", content, attributes)
                made = _counted(content, order, (offset, offset + size), path)
                return Samples(*made, (kind, config), bool(flags & EXCLUDE_KERNEL))
    except OSError as error:
        raise NoSamples(f"{path}: {error.strerror}") from None
    except struct.error:
        raise NoSamples(f"{path}: damaged: its header points beyond its end") from None


def _counted(content: mmap.mmap, order: str, where: tuple[int, int], path: Path) -> tuple[int, int, int]:
    """The numbers of samples, lost records and pauses."""
    at, end = where
    record, number = struct.Struct(f"{order}IHH"), struct.Struct(f"{order}Q")
    if end > len(content):
        raise NoSamples(f"{path}: ends before its last record")
    samples = lost = lost_samples = throttled = 0
    try:
        while at < end:
            kind, _, size = record.unpack_from(content, at)
            if size < record.size:
                raise NoSamples(f"{path}: damaged at byte {at:,}")
            if kind == SAMPLE:
                samples += 1
            elif kind == LOST:
                lost += number.unpack_from(content, at + 16)[0]  # the count follows the event's number
            elif kind == LOST_SAMPLES:
                lost_samples += number.unpack_from(content, at + 8)[0]
            elif kind == THROTTLE:
                throttled += 1
            elif kind in COMPRESSED:
                raise NoSamples(
                    f"{path}: is compressed, which cbench does not request: use a `perf` that does not add -z"
                )
            elif kind == AUX_DATA:
                size += number.unpack_from(content, at + 8)[0]
            at += size
    except struct.error:
        raise NoSamples(f"{path}: damaged at byte {at:,}") from None
    return samples, max(lost, lost_samples), throttled  # newer kernels report the same loss in both records
