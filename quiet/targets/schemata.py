"""Access one resource of a resctrl group's schemata, domain by domain (filesystems/resctrl.rst).

schemata:/quiet/L3  the schemata of a group: "0=ff0;1=00f"
schemata:/L3        the schemata of the default group, which has all CPUs and tasks that are in no other group
"""

from __future__ import annotations

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets.resctrl import ROOT, write
from quiet.targets.target_type import TargetType


def lines(reader: Reader, group: str) -> dict[str, str]:
    """The schemata of a group by resource (`group` "" is the default group); empty if there are none."""
    text = reader.text(f"{ROOT}{group}/schemata") or ""
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _get(reader: Reader, name: str) -> str | None:
    group, _, resource = name.rpartition("/")
    return lines(reader, group).get(resource)


def _put(host: Host, name: str, value: str) -> None:
    group, _, resource = name.rpartition("/")
    write(host, f"{ROOT}{group}/schemata", f"{resource}:{value}")


# the schemata disappear with the group: without the group or the mount, nothing is left to restore
SCHEMATA = TargetType("schemata", _get, _put, remove=lambda host, name: None, ends=True)
