"""Journals for the tests: of older formats (recorded, kept forever), and lines sealed again after an edit.

`format-1.jsonl` is what the last quiet of format 1 wrote for `apply --profile bench` on the recorded machine `cpufreq`;
`format-1.json` has the files that it changed, each with its contents before and after.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from quiet.settings import journal_lines
from tests import hosts

FOLDER = Path(__file__).parent
JOURNAL = "run/quiet/journal.jsonl"


def sealed(items: Iterable[Mapping[str, Any]]) -> bytes:
    """An undamaged journal of these operations."""
    lines = []
    for number, item in enumerate(items, 1):
        plain = {name: value for name, value in item.items() if name not in ("line", "crc", "lines")}
        lines.append(journal_lines.line(plain, number))
    return counted(b"".join(lines), len(lines))


def counted(data: bytes, lines: int) -> bytes:
    """The journal with another number of lines in its first one."""
    at = journal_lines.tail(data).count_at
    return data[:at] + journal_lines.count(lines) + data[at + 8 :]


def items(data: bytes) -> list[dict[str, Any]]:
    """The operations of a journal."""
    return [json.loads(line) for line in data.splitlines()]


def format_1(root: Path) -> dict[str, bytes]:
    """The recorded machine with the profile applied, in format 1; returns the contents to be restored, by path."""
    hosts.unpack(hosts.FOLDER / "cpufreq.tar.gz", root)
    files: dict[str, list[str]] = json.loads((FOLDER / "format-1.json").read_text())
    for name, (_, after) in files.items():
        (root / name).write_text(after)
    (root / "run/quiet").mkdir(parents=True)
    (root / JOURNAL).write_bytes((FOLDER / "format-1.jsonl").read_bytes())
    return {name: before.encode() for name, (before, _) in files.items()}
