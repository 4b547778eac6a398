"""Files like those of `perf record`, and whether the program is here."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

NEEDS_PERF = pytest.mark.skipif(shutil.which("perf") is None, reason="needs perf (tests/lab/harness/needs.sh perf)")
BUSY = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
EXCLUDE_KERNEL = 1 << 5


def record(kind: int, payload: bytes = b"", order: str = "<") -> bytes:
    return struct.pack(f"{order}IHH", kind, 0, 8 + len(payload)) + payload


def file(
    path: Path, *records: bytes, order: str = "<", size: int | None = None, header: int = 104, flags: int = 0
) -> Path:
    """A file with these records of a software clock; `size`: of all of them, as its header has it."""
    data = b"".join(records)
    magic = {"<": b"PERFILE2", ">": b"2ELIFREP"}[order]
    attributes = struct.pack(f"{order}IIQ24xQ16x", 1, 64, 0, flags)
    sections = (104, 64, 168, len(data) if size is None else size, 0, 0)
    begin = magic + struct.pack(f"{order}QQ6Q", header, 64, *sections) + bytes(32)
    path.write_bytes(begin + attributes + data)
    return path
