"""Create the slice of the isolated CPUs as a systemd unit, so that systemd neither removes nor changes its cgroup.

    own-slice:quiet.slice                    "present", absent, or incomplete: NOT_STARTED, NO_UNIT
    own-slice:quiet.slice/AllowedCPUs        a property of the slice (systemd.resource-control(5)): "2-3"

Processes started in the slice, by `systemd-run --slice=quiet.slice` or `podman run --cgroup-parent=quiet.slice`, run on
the isolated CPUs. The unit file is in /run, and stays while the slice contains a unit of another program.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Sequence

from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets import systemd, value_types
from quiet.targets.cgroup import empty_group, groups_below
from quiet.targets.systemd_slice import MOUNT
from quiet.targets.target_type import TargetType

_HEAD = "# by quiet; `quiet restore` removes it\n[Unit]\nDescription=The isolated CPUs\n\n[Slice]\n"
_LIVE = {"AllowedCPUs": "cpuset.cpus", "AllowedMemoryNodes": "cpuset.mems", "MemorySwapMax": "memory.swap.max"}
_UNITS = (".scope", ".service", ".slice")
NOT_STARTED, NO_UNIT = "a unit without its cgroup", "a cgroup without our unit"
"""The states after a kill between two steps, or if the cgroup is not ours; a restore must not treat them as absent."""


def _file(name: str) -> str:
    return f"{systemd.RUNTIME}/{name.partition('/')[0]}"


def _properties(reader: Reader, name: str) -> dict[str, str] | None:
    text = reader.text(_file(name))
    if text is None:
        return None
    lines = (line.partition("=") for line in text.partition("[Slice]\n")[2].splitlines())
    return {key: value for key, _, value in lines if value}


def _get(reader: Reader, name: str) -> str | None:
    unit, _, key = name.partition("/")
    properties, started = _properties(reader, name), reader.exists(f"{MOUNT}/{unit}")
    if not key and (properties is None or not started):
        return NO_UNIT if started else None if properties is None else NOT_STARTED
    if properties is None or not started:
        return None
    if not key:
        return "present"
    live = reader.text(f"{MOUNT}/{unit}/{_LIVE[key]}")
    wanted = properties.get(key)
    if wanted is None or live is None or value_types.same(value_types.CPULIST, live, wanted):
        return wanted
    return f"{live}, not {wanted}"


def _put_many(host: Host, items: Sequence[tuple[str, str]]) -> None:
    if not host.live:
        raise OSError(errno.EOPNOTSUPP, "systemd units cannot be changed in a recorded tree (--root)")
    unit = items[0][0].partition("/")[0]
    if (unit, NO_UNIT) in items:  # the cgroup belongs to other programs and stays unchanged
        if host.exists(_file(unit)):
            host.unlink(_file(unit))
        host.systemctl("daemon-reload")
        return
    properties = _properties(host, unit) or {}
    properties |= {name.partition("/")[2]: value for name, value in items if "/" in name}
    if host.exists(_file(unit)):
        host.unlink(_file(unit))
    host.create(_file(unit), _HEAD + "".join(f"{key}={value}\n" for key, value in properties.items()))
    host.systemctl("daemon-reload")
    host.systemctl("start", unit)
    for key, value in properties.items():
        live = f"{MOUNT}/{unit}/{_LIVE[key]}"
        if not value_types.same(value_types.CPULIST, host.text(live), value):
            host.write(live, value)


def _remove(host: Host, name: str) -> None:
    if "/" in name:
        return  # the property disappears with the unit
    folder = f"{MOUNT}/{name}"
    units = [child for child in host.names(folder) if child.endswith(_UNITS) and _populated(host, f"{folder}/{child}")]
    if units:
        raise OSError(errno.EBUSY, f"the slice contains {', '.join(units)}; stop it, then run `quiet restore` again")
    if host.exists(folder):
        empty_group(host, folder, MOUNT)
    with contextlib.suppress(OSError):  # systemd may not know the unit yet, or no longer knows it
        host.systemctl("stop", name)
    if host.exists(_file(name)):
        host.unlink(_file(name))
    host.systemctl("daemon-reload")
    if host.exists(folder):
        with contextlib.suppress(FileNotFoundError):
            host.rmdir(folder)


def _populated(reader: Reader, folder: str) -> bool:
    return any((reader.text(f"{each}/cgroup.procs") or "").strip() for each in groups_below(reader, folder))


OWN_SLICE = TargetType(
    "own-slice",
    _get,
    put=lambda host, name, value: _put_many(host, [(name, value)]),
    remove=_remove,
    written_file=lambda reader, name: _file(name),
    put_many=_put_many,
)
