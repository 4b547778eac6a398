"""Detect settings that this process cannot write: in a container, in a user namespace, or without a Linux kernel.

Sources: user_namespaces(7); the runtime specification's read-only paths (opencontainers/runtime-spec, config-linux);
systemd.io/CONTAINER_INTERFACE.
"""

from __future__ import annotations

from typing import NamedTuple

from quiet.host.proc import mounts
from quiet.host.reader import Reader
from quiet.machine import virtualization
from quiet.machine.facts import Facts
from quiet.targets import registry

_EVERYBODY = ["0", "0", "4294967295"]  # the first user namespace maps every user to itself


class ReadOnlyMounts(NamedTuple):
    """The mount points at and below /sys and /proc, deepest first, each with True if it is read-only, else False.

    `where`: the container or namespace that has these mounts, for messages.
    """

    mounts: tuple[tuple[str, bool], ...]
    where: str

    def closed(self, path: str) -> bool:
        """Whether a path is on a read-only mount."""
        inside = (closed for place, closed in self.mounts if path == place or path.startswith(place + "/"))
        return next(inside, False)


def whole(facts: Facts) -> str:
    """The reason why quiet cannot change any setting on this host; "" if no such reason is known."""
    kind = virtualization.hypervisor(facts)
    if kind in ("WSL 1", "gVisor"):
        return f"{kind} is not a Linux kernel: it has no settings to change; measure on a Linux host, or with WSL 2"
    inside = virtualization.container(facts)
    where = f"this {inside}" if inside else "a user namespace"
    users = (facts.reader.text("/proc/self/uid_map") or "").split()
    if users and users != _EVERYBODY:
        return f"root in {where} has no rights over the kernel's settings (user namespace): run quiet on the host"
    ro = read_only_mounts(facts)
    if ro and ro.closed("/sys") and ro.closed("/proc/sys"):
        return f"/sys and /proc/sys are read-only in {ro.where}: run quiet on the host, or in a privileged container"
    return ""


def read_only_mounts(facts: Facts) -> ReadOnlyMounts | None:
    """The mounts at and below /sys and /proc, for `why_not`; None if none is read-only."""
    by_place: dict[str, bool] = {}
    for mount in mounts(facts.reader):
        if mount.path.startswith(("/sys", "/proc")):
            by_place[mount.path] = "ro" in mount.options  # a later mount hides an earlier one
    if not any(by_place.values()):
        return None
    inside = virtualization.container(facts)
    return ReadOnlyMounts(
        tuple(sorted(by_place.items(), key=lambda item: -len(item[0]))),
        f"this {inside}" if inside else "this mount namespace",
    )


def why_not(ro: ReadOnlyMounts, reader: Reader, target: str) -> str:
    """The reason why this target cannot be written if its file is on a read-only mount; "" otherwise."""
    path = registry.written_file(reader, target)
    return f"mounted read-only in {ro.where}: only the host can change it" if path and ro.closed(path) else ""
