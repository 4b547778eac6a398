"""Install and remove the systemd service that applies a profile after each boot and restores the settings when it is
stopped.

Installing only adds files and directories, which the top of the unit lists, so that removal deletes only these:
quiet.service, quiet-after.target, the link that enables the service, a copy of a user's profile from outside /etc, and
new directories.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from quiet import cpulist
from quiet.errors import Refused, UsageError
from quiet.host.host import Host
from quiet.host.lock import make_folders
from quiet.host.reader import Reader
from quiet.machine import trusted_program
from quiet.machine.cpu_selection import parse_requested
from quiet.machine.facts import CPU, Facts
from quiet.service import systemd_unit
from quiet.service.systemd_unit import MARK, NAME
from quiet.settings import journal
from quiet.settings.profile import Profile, parse

UNIT = f"{systemd_unit.FOLDER}/{NAME}"
AFTER = f"{systemd_unit.FOLDER}/{systemd_unit.AFTER}"
LINK = f"{systemd_unit.FOLDER}/{systemd_unit.TARGET}.wants/{NAME}"
PROFILES = "/etc/quiet"
_SYSTEMD = ("/usr/lib/systemd/systemd", "/lib/systemd/systemd", systemd_unit.FOLDER)
_RUNNING = "/run/systemd/system"  # sd_booted(3)
_RELOAD, _FORGET = "daemon-reload", f"reset-failed {NAME}"
_STOP = (
    f"stop {NAME}",
    f"stop {systemd_unit.AFTER}",
)  # if both were stopped together, the target would wait for units that the restore starts
_TAKES_ROOT = "installing or removing the service needs root; run this command with sudo"


class Installed(NamedTuple):
    """The service, as its unit describes it: the profile's name or file, --cpus, whether it starts at boot, and its
    files.
    """

    profile: str
    cpus: str | None
    at_boot: bool
    files: tuple[str, ...]
    unit: str = NAME


class ServiceReceipt(NamedTuple):
    """The files created or removed, in order, and the related commands.

    `ran`: the commands were run, not only shown.
    """

    profile: str | None  # None: there was no service
    files: tuple[str, ...]
    commands: tuple[str, ...]
    ran: bool
    left: bool = False  # stopped, but its settings are still applied
    unit: str = NAME


def installed(reader: Reader) -> Installed | None:
    """The installed service; None if there is none, or the unit is not quiet's."""
    lines = (reader.text(UNIT) or "").splitlines()
    if not lines or lines[0] != MARK:
        return None
    head = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# ") and ": " in line)
    files = tuple(line[4:] for line in lines if line.startswith("#   /"))
    return Installed(head.get("profile", "unknown"), head.get("cpus"), reader.link(LINK) is not None, files)


def install(host: Host, profile: Profile, cpus: str | None = None, trust: bool = False) -> ServiceReceipt:
    """Apply the profile after each boot from now on; replace an existing service of quiet.

    Raises UsageError for a wrong CPU list; Refused if systemd is missing, another package has a unit of this name,
    writing is not permitted, or users other than root can change the program that root would run at each boot (`trust`
    permits this).
    """
    _check_systemd(host)
    _check_name(host)
    if not trust:
        _check_program(host)
    cpus = _check_cpus(host, profile, cpus)
    source, files = _profile(host, profile, trust)
    old = installed(host)
    known = old.files if old else ()
    files[AFTER] = systemd_unit.after(host)
    made = _with_folders(host, [UNIT, *files, LINK], known)
    files[UNIT] = systemd_unit.text(host, source, cpus, made)
    try:
        _make(host, made, files, known)
        _remove(host, [path for path in known if path not in made])
    except PermissionError:
        raise Refused(_TAKES_ROOT) from None
    except OSError as error:
        raise Refused(f"the service was not installed: {error.filename}: {error.strerror}") from None
    if host.live:
        _systemctl(host, _RELOAD, "the service was installed, but not loaded")
    return ServiceReceipt(source, tuple(made), (f"systemctl {_RELOAD}",), host.live)


def remove(host: Host) -> ServiceReceipt:
    """Stop the service, which restores its settings, and remove all of its files.

    Raises Refused if the unit of this name belongs to another package, or if the service cannot be stopped or removed.
    """
    service = installed(host)
    if service is None:
        _check_name(host)
        return ServiceReceipt(None, (), (), False)
    if not host.access(systemd_unit.FOLDER, os.W_OK):
        raise Refused(_TAKES_ROOT)
    ran = host.live and host.exists(_RUNNING)
    active = ran and _succeeds(host, f"is-active {NAME}")
    for command in _STOP if ran else ():
        _systemctl(host, command, "the service was not removed")
    try:
        gone = _remove(host, service.files)
    except OSError as error:
        raise Refused(f"the service was not removed: {error.filename}: {error.strerror}") from None
    if ran:
        _systemctl(host, _RELOAD, "the service was removed, but systemd was not reloaded")
        _succeeds(host, _FORGET)  # otherwise systemd would still list a failed service
    commands = tuple(f"systemctl {command}" for command in (*_STOP, _RELOAD))
    return ServiceReceipt(service.profile, gone, commands, ran, active and journal.read(host) is not None)


def _systemctl(host: Host, command: str, state: str) -> None:
    """Run systemctl. Raises Refused, with the `state` of the service, if it fails."""
    try:
        host.systemctl(*command.split())
    except OSError as error:
        why = error.strerror or str(error)
        raise Refused(f"{state}: {why}; correct this, then run as root: systemctl {command}") from None


def _succeeds(host: Host, command: str) -> bool:
    with contextlib.suppress(OSError):
        host.systemctl(*command.split())
        return True
    return False


def _check_systemd(host: Host) -> None:
    if host.live and not host.exists(_RUNNING):
        raise Refused("this host was not booted by systemd; have your init system run `quiet apply` at boot")
    if not host.live and not any(host.is_entry(path) for path in _SYSTEMD):
        raise Refused(f"--root {host.root}: this tree contains no systemd")


def _check_name(host: Reader) -> None:
    """Raise Refused if another package has a unit of this name, or if an administrator has masked it."""
    for folder in systemd_unit.FOLDERS:
        path = f"{folder}/{NAME}"
        if not host.is_entry(path) or (path == UNIT and installed(host)):
            continue
        if host.link(path) == "/dev/null":
            raise Refused(f"{path} masks {NAME}; run `systemctl unmask {NAME}`")
        raise Refused(f"{path} already exists and was not created by quiet; rename or remove it")
    if host.is_entry(AFTER) and not (host.text(AFTER) or "").startswith(MARK):
        raise Refused(f"{AFTER} already exists and was not created by quiet; rename or remove it")


def _check_program(host: Reader) -> None:
    """Raise Refused if a user other than root can change the program, and so gain root privileges."""
    if untrusted := trusted_program.others(host):
        path, who = untrusted
        raise Refused(
            f"root would run this program at each boot, and {who} can change {path}; install quiet for root "
            "(docs/boot.md says how), or allow it with --trust-program"
        )


def _check_cpus(host: Host, profile: Profile, cpus: str | None) -> str | None:
    """Check the CPU choice and return it in the kernel's notation; after a boot, an error would go unnoticed."""
    if host.exists(CPU):
        profile.choose(Facts(host), cpus)
    return cpulist.format(parse_requested(cpus, "--cpus")) if cpus is not None else None


def _profile(host: Host, profile: Profile, trust: bool) -> tuple[str, dict[str, str]]:
    """The path of the profile for the service, and the path and content of the copy to create, if any.

    Root applies the profile at each boot, so root must own the file, and it must be available early. A file in /etc is
    used in place, and changes to it take effect at the next boot; any other file is copied to /etc.
    """
    source = profile.source
    if not os.path.isabs(source):
        return source, {}
    if not source.isprintable():
        raise UsageError(f"profile {source!r}: a systemd unit cannot contain such a path; rename the file")
    root = os.path.abspath(host.root) if host.root else ""
    inside = source.removeprefix(root) if source.startswith(f"{root}/") else ""
    path = inside if inside.startswith("/etc/") else f"{PROFILES}/{os.path.basename(source)}"
    there = host.text(path)
    if path == inside and there is None:
        raise Refused(f"{source}: no such file inside the tree; a link must not lead out of it")
    if (untrusted := trusted_program.who_can_change(host, [path])) and not trust:
        place, who = untrusted
        raise Refused(
            f"root would apply {path} at each boot, and {who} can change {place}; give it to root "
            "(chown root:root, chmod go-w), or allow it with --trust-program"
        )
    if path == inside and not (there or "").startswith(MARK):
        return path, {}
    if there is not None and not there.startswith(MARK):
        raise Refused(f"{path} already exists and was not created by quiet; use that file, or rename yours")
    with open(source, encoding="utf-8") as file:
        content = file.read()
    if parse(content, profile.source) != profile:
        raise Refused(f"{source} was changed while it was read; try again")
    return path, {path: content if content.startswith(MARK) else f"{MARK}\n{content}"}


def _with_folders(host: Host, files: Iterable[str], known: Iterable[str]) -> list[str]:
    """The files, each after those of its parent directories (with a final slash) that are missing or are already
    ours.
    """
    made: list[str] = []
    for path in files:
        parts = path.split("/")[1:-1]
        above = ["/" + "/".join(parts[: depth + 1]) + "/" for depth in range(len(parts))]
        made += [each for each in above if each not in made and (each in known or not host.exists(each))]
        made.append(path)
    return made


def _make(host: Host, made: Iterable[str], files: Mapping[str, str], known: Iterable[str]) -> None:
    """Create the directories and files in order; if one fails, remove the new ones.

    The unit is first: it lists all others.
    """
    new: list[str] = []
    try:
        for path in made:
            if path not in known:
                new.append(path)
            _write(host, path, files.get(path))
    except OSError:
        _remove(host, new)
        raise


def _write(host: Host, path: str, content: str | None) -> None:
    if path.endswith("/"):
        make_folders(host, path.rstrip("/"))
    elif content is not None:
        host.create(path, content)
    elif host.link(path) != UNIT:
        with contextlib.suppress(FileNotFoundError):
            host.unlink(path)
        host.symlink(path, UNIT)


def _remove(host: Host, files: Iterable[str]) -> tuple[str, ...]:
    """Remove our files and directories in reverse order; a directory only if it is empty. Returns the removed paths."""
    gone = []
    for path in reversed([*files]):
        if path.endswith("/"):
            if not host.is_folder(path) or host.names(path):
                continue
            host.rmdir(path)
        elif host.link(path) is not None if path == LINK else (host.text(path) or "").startswith(MARK):
            host.unlink(path)
        else:
            continue
        gone.append(path)
    return tuple(gone)
