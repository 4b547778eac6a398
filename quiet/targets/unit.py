"""Control whether a systemd unit is active, and whether it is masked for this boot.

    unit:cron.service    "active enabled", "inactive static masked"; a write uses only the words active and masked

Only a mask is reliable: D-Bus, a socket, a timer or a path can restart a unit that is merely stopped. The mask is a
link in /run, which a reboot clears; the link is in system.control if a file of the unit is in
/run/systemd/system or in a directory that takes precedence over it.
"""

from __future__ import annotations

import errno
from collections.abc import Sequence

from quiet.host.host import Host
from quiet.targets import systemd
from quiet.targets.target_type import TargetType


def _put_many(host: Host, items: Sequence[tuple[str, str]]) -> None:
    """Write several units with one reload, one stop and one start, because each call of systemctl is expensive."""
    if not host.live:
        raise OSError(errno.EOPNOTSUPP, "services cannot be changed in a recorded tree (--root)")
    now = {name: (systemd.state(host, name) or "").split() for name, _ in items}
    wanted = {name: value.split() for name, value in items}
    stop = [name for name in now if "active" in now[name] and "active" not in wanted[name]]
    needed = _needed(host, stop)
    stop = [name for name in stop if name not in needed]
    if stop:  # stop before masking: a running timer fails if it is masked
        host.systemctl("stop", *stop)
    reload = any("stale" in words for words in now.values())
    for name, words in wanted.items():
        if name not in needed and ("masked" in words) is not ("masked" in now[name]):
            reload = True
            (_mask if "masked" in words else _unmask)(host, name)
    if reload:
        host.systemctl("daemon-reload")
    start = [name for name in now if "active" in wanted[name] and "active" not in now[name]]
    again = _listened_for(host, start)
    back = [name for name in stop if host.unit_states().get(name, ("", ""))[1] == "active"]  # started again in between
    if back or again:
        host.systemctl("stop", *back, *again)
    if start:
        host.systemctl("start", *sorted([*start, *again], key=_starting))
    for name, others in needed.items():
        raise OSError(errno.EBUSY, f"stopping {name} would also stop {', '.join(sorted(others))}")


def _needed(host: Host, stop: list[str]) -> dict[str, frozenset[str]]:
    """The units that cannot be stopped, because units that must keep running would stop too; each with these units."""
    needed: dict[str, frozenset[str]] = {}
    users = systemd.needed_by(host, stop) if stop else {}
    while more := {
        name: others
        for name in users.keys() - needed.keys()
        if (others := users[name] - users.keys() | users[name] & needed.keys())
    }:
        needed.update(more)
    return needed


def _listened_for(host: Host, start: list[str]) -> list[str]:
    """The running services that must be restarted, because their sockets cannot start while the service runs."""
    sockets = [name for name in start if name.endswith(".socket")]
    shown = host.unit_properties(sockets, ("Triggers",)) if sockets else {}
    services = {service for each in shown.values() for service in each.get("Triggers", "").split()}
    states = host.unit_states() if services else {}
    return sorted(service for service in services if states.get(service, ("", ""))[1] == "active")


def _starting(name: str) -> int:
    """The rank in the start order: sockets before their services, then the units that start further jobs."""
    return (".socket", ".service", ".path", ".timer").index("." + name.rpartition(".")[2])


def _mask(host: Host, name: str) -> None:
    before = systemd.PATHS[: systemd.PATHS.index(systemd.RUNTIME) + 1]
    first = any(host.exists(f"{folder}/{name}") for folder in before)
    if first and not host.exists(systemd.CONTROL):
        host.mkdir(systemd.CONTROL)
    host.symlink(f"{systemd.CONTROL if first else systemd.RUNTIME}/{name}", "/dev/null")


def _unmask(host: Host, name: str) -> None:
    for folder in (systemd.CONTROL, systemd.RUNTIME):
        if host.text(f"{folder}/{name}") == "":
            host.unlink(f"{folder}/{name}")
    if not host.names(systemd.CONTROL) and host.exists(systemd.CONTROL):
        host.rmdir(systemd.CONTROL)


UNIT = TargetType(
    "unit", systemd.state, put=lambda host, name, value: _put_many(host, [(name, value)]), put_many=_put_many
)
