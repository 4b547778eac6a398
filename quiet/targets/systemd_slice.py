"""Restrict the CPUs that systemd allows a slice (or init.scope) to use.

    slice:system.slice   its live cpuset.cpus: "0-2", "" if unrestricted, "0-1 by drop-in" if quiet restricts it

A write creates a separate drop-in (AllowedCPUs=, systemd.resource-control(5)), keeps other settings of the slice's
CPUs, and reloads systemd: a value known to systemd survives reloads, new units, and the disabling of unneeded
controllers. To restore another value, the drop-in is removed; systemd may then leave the live value unchanged (systemd
issue 43846), so that value is written too.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from quiet import cpulist
from quiet.errors import UsageError
from quiet.host.host import Host
from quiet.host.reader import Reader
from quiet.targets import systemd
from quiet.targets.target_type import TargetType

MOUNT = "/sys/fs/cgroup"  # the mount point that systemd uses if cgroup v2 has all controllers
_POSSIBLE = "/sys/devices/system/cpu/possible"
_NAME = "zz-quiet.conf"  # after 50-AllowedCPUs.conf of systemctl set-property
BY = " by drop-in"
_HEAD = "# by quiet; `quiet restore` removes it"


def _folder(name: str) -> str:
    return f"{systemd.RUNTIME}/{name}.d"


def _live(reader: Reader, name: str) -> str:
    """The kernel's value; "" for a list of all CPUs, which also restricts nothing."""
    live = reader.text(f"{MOUNT}/{name}/cpuset.cpus") or ""
    return "" if _same(live, reader.text(_POSSIBLE) or "") else live


def _get(reader: Reader, name: str) -> str | None:
    if not reader.exists(f"{MOUNT}/{name}"):
        return None
    live = _live(reader, name)
    text = reader.text(f"{_folder(name)}/{_NAME}")
    if text is None:
        return live
    ours = text.rpartition("AllowedCPUs=")[2].strip()
    return ours + BY if _same(ours, live) else f"{live or 'all'}, not {ours}{BY}"


def _same(cpus: str, other: str) -> bool:
    try:
        return cpulist.parse(cpus) == cpulist.parse(other)
    except UsageError:
        return False


def _put_many(host: Host, items: Sequence[tuple[str, str]]) -> None:
    if not host.live:
        raise OSError(errno.EOPNOTSUPP, "systemd units cannot be changed in a recorded tree (--root)")
    for name, value in items:
        if value.endswith(BY):
            _add(host, name, value.removesuffix(BY))
        else:
            _remove(host, name)
    host.systemctl("daemon-reload")
    for name, value in items:
        _set_live(host, name, value.removesuffix(BY))


def _set_live(host: Host, name: str, value: str) -> None:
    path = f"{MOUNT}/{name}/cpuset.cpus"
    if not host.exists(path) or _same(_live(host, name), value):
        return
    try:
        host.write(path, value)
    except OSError as error:
        if error.errno != errno.ENOSPC or value:
            raise
        host.write(path, host.text(_POSSIBLE) or "")  # with processes, the kernel rejects an empty value


def _add(host: Host, name: str, value: str) -> None:
    if not host.exists(_folder(name)):
        host.mkdir(_folder(name))
    section = "Scope" if name.endswith(".scope") else "Slice"
    # the settings of several files accumulate: an empty setting resets the earlier ones
    host.create(f"{_folder(name)}/{_NAME}", f"{_HEAD}\n[{section}]\nAllowedCPUs=\nAllowedCPUs={value}\n")


def _remove(host: Host, name: str) -> None:
    if host.exists(f"{_folder(name)}/{_NAME}"):
        host.unlink(f"{_folder(name)}/{_NAME}")
    if host.exists(_folder(name)) and not host.names(_folder(name)):
        host.rmdir(_folder(name))


SLICE = TargetType("slice", _get, put=lambda host, name, value: _put_many(host, [(name, value)]), put_many=_put_many)
