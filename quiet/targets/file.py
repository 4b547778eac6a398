"""`file:/sys/...`: the content of a file."""

from __future__ import annotations

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType


def _get(reader: Reader, name: str) -> str | None:
    return reader.text(name)


def _put(host: Host, name: str, value: str) -> None:
    host.write(name, value)


def _written_file(reader: Reader, name: str) -> str:
    return name


FILE = TargetType("file", _get, _put, written_file=_written_file)
