r"""Access `swap:/dev/sda2`: a swap device or file, "off", "on" (the kernel chooses the priority) or "on 5".

Source: proc_swaps(5), swapon(2). /proc/swaps writes a space in a path as \040.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.target_type import TargetType


class Area(NamedTuple):
    """A line of /proc/swaps; sizes are in KiB. A priority below 0 was chosen by the kernel."""

    path: str
    kind: str
    size: int
    used: int
    priority: int

    @property
    def deleted(self) -> bool:
        """Whether the area is a deleted file, which could not be used for swap again."""
        return self.path.endswith(" (deleted)")


def areas(reader: Reader) -> list[Area]:
    """The host's swap areas, in the kernel's order."""
    lines = []
    for line in (reader.text("/proc/swaps") or "").splitlines()[1:]:
        fields = line.split()
        if len(fields) == 5:
            path = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[0])
            lines.append(Area(path, fields[1], *(int(number) for number in fields[2:])))
    return lines


def _get(reader: Reader, name: str) -> str | None:
    for area in areas(reader):
        if area.path == name:
            return "on" if area.priority < 0 else f"on {area.priority}"
    return "off"


def _put(host: Host, name: str, value: str) -> None:
    state, _, priority = value.partition(" ")
    host.swap(name, None if state == "off" else int(priority or -1))


SWAP = TargetType("swap", _get, _put)
