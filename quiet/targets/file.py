"""Access `file:/sys/...`: the content of a file."""

from __future__ import annotations

from quiet.targets.target_type import TargetType

FILE = TargetType(
    "file",
    get=lambda reader, name: reader.text(name),
    put=lambda host, name, value: host.write(name, value),
    written_file=lambda reader, name: name,
)
