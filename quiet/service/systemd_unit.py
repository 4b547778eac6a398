"""Generate the systemd units: quiet.service applies a profile after each boot, quiet-after.target delays that
until other services have started, and quiet-watch.service runs `quiet watch`.

Comments at the top of quiet.service list the profile, the CPUs if given, and every file and directory that was created
for the service.
Sources: systemd.unit(5), systemd.service(5), systemd.exec(5).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import quiet
from quiet.errors import UsageError
from quiet.host.reader import Reader

NAME, AFTER, WATCH = "quiet.service", "quiet-after.target", "quiet-watch.service"
FOLDER = "/etc/systemd/system"
TARGET = "multi-user.target"
MARK = "# Made by `quiet install-service`; `quiet remove-service` takes it away."
FOLDERS = (
    *(FOLDER, "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"),
    *("/lib/systemd/system", "/run/systemd/generator.late"),
)
"""The directories in which systemd looks for units that packages or administrators install."""

_FIRST = (  # units that change kernel settings, request interrupts or run an administrator's commands, if they exist
    *("systemd-modules-load.service", "systemd-sysctl.service", "systemd-tmpfiles-setup.service"),
    *("systemd-udev-settle.service", "network.target", "network-online.target", "rc-local.service"),
)
_RIVALS = (
    *("tuned", "tuned-ppd", "power-profiles-daemon", "tlp", "auto-cpufreq", "cpupower", "cpufrequtils", "loadcpufreq"),
    *("ondemand", "system76-power", "thermald", "laptop-mode", "irqbalance", "numad", "ksm", "ksmtuned", "rtirq"),
    *("saptune", "sapconf", "sysfsutils"),
)


def text(reader: Reader, profile: str, cpus: str | None, made: Sequence[str]) -> str:
    """The text of the unit. `profile`: a bundled name or an absolute path; `made`: the paths that a removal deletes."""
    chosen = ["--cpus", cpus] if cpus else []
    lines = [
        MARK,
        f"# profile: {profile}",
        *([f"# cpus: {cpus}"] if cpus else []),
        "# files:",
        *(f"#   {path}" for path in made),
        "[Unit]",
        f"Description=quiet: profile {word(profile)[1:-1]}",
        f"Wants={AFTER}",
        f"After={' '.join([AFTER, *([TARGET] if _late(reader) else [])])}",
        f"RequiresMountsFor={_mounts()}",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        "# 1: some settings could not be applied. The others are applied; `quiet verify` lists the failures.",
        "SuccessExitStatus=1",
        f"ExecStart={_command([*_program(), 'apply', '--profile', profile, *chosen])}",
        f"ExecStop={_command([*_program(), 'restore'])}",
        "[Install]",
        f"WantedBy={TARGET}",
    ]
    return "\n".join([*lines, ""])


def watch_text(options: dict[str, str]) -> str:
    """The text of the unit that runs `quiet watch` with these options.

    With "--cpus", the unit is independent; otherwise, it runs while quiet.service does. It runs as root, with only the
    capability for process notifications (with "--cpus": none): another user cannot read every setting, and all users
    must be able to read the history.
    """
    alone = "--cpus" in options
    paths = {name: os.path.abspath(options[name]) for name in ("--textfile", "--store") if name in options}
    written = [path if name == "--store" else os.path.dirname(path) for name, path in paths.items()]
    words = [each for option in (options | paths).items() for each in option]
    lines = [
        "[Unit]",
        f"Description=quiet: watch CPUs {options['--cpus']}" if alone else "Description=quiet: watch the isolated CPUs",
        *([] if alone else [f"After={NAME}", f"PartOf={NAME}"]),
        f"RequiresMountsFor={_mounts()}",
        "[Service]",
        f"ExecStart={_command([*_program(), 'watch', *words])}",
        "# 1: settings have drifted. The journal lists them.",
        "SuccessExitStatus=1",
        "Restart=on-failure",
        "RestartSec=60",
        "# 2, 3: invalid options, or nothing is applied. A restart would fail again.",
        "RestartPreventExitStatus=2 3",
        "CPUSchedulingPolicy=batch",
        "StateDirectory=quiet",
        *(f"ReadWritePaths={word(folder)}" for folder in written),
        f"CapabilityBoundingSet={'' if alone else 'CAP_NET_ADMIN'}",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "ProtectHome=read-only",
        "ProtectKernelTunables=yes",
        "ProtectControlGroups=yes",
        "RestrictAddressFamilies=AF_UNIX AF_NETLINK",
        "RestrictNamespaces=yes",
        "SystemCallFilter=@system-service",
        "[Install]",
        f"WantedBy={TARGET if alone else NAME}",
    ]
    return "\n".join([*lines, ""])


def _program() -> list[str]:
    """The command that runs quiet in the current Python environment.

    It imports nothing from the working directory (-P), and writes no compiled modules into another user's directories
    (-B).
    """
    return [sys.executable, "-P", "-B", "-m", "quiet"]


def _mounts() -> str:
    """The paths that must be mounted before the program can run."""
    needed = dict.fromkeys([sys.executable, os.path.realpath(sys.executable), os.path.dirname(quiet.__file__)])
    return " ".join(word(path) for path in needed)


def after(reader: Reader) -> str:
    """The target that is reached after all installed daemons that would change settings have started.

    The service is not ordered after the daemons directly: when it stops, restoring starts some of them, and systemd
    delays a start until units that are ordered with it, in either direction, have stopped, so each would wait for the
    other.
    """
    names = [*_FIRST, *(name for name, _ in _rivals(reader))]
    head = [MARK, "[Unit]", "Description=Units that quiet waits for, because they would overwrite its settings"]
    return "\n".join([*head, f"After={' '.join(names)}", ""])


def _rivals(reader: Reader) -> list[tuple[str, str]]:
    return [(f"{name}.service", found) for name in _RIVALS if (found := _unit(reader, name)) is not None]


def _late(reader: Reader) -> bool:
    """Whether a rival is ordered after multi-user.target itself, as TLP is.

    Then the service must also be ordered after this target, to avoid a cycle; otherwise it should not be, so that units
    that wait for the service can be part of the target.
    """
    return any(_is_after_target(found) for _, found in _rivals(reader))


def _unit(reader: Reader, name: str) -> str | None:
    """The text of an installed service, "" if it is only an init script; None if it is missing or masked."""
    for folder in FOLDERS:
        found = reader.text(f"{folder}/{name}.service")
        if found is not None:
            return found or None
    return "" if reader.exists(f"/etc/init.d/{name}") else None


def _is_after_target(unit: str) -> bool:
    lines = (line.partition("=") for line in unit.splitlines())
    return any(key.strip() == "After" and TARGET in names.split() for key, _, names in lines)


def word(text: str) -> str:
    """Quote one word for a unit file (systemd.syntax(7)); % is doubled, because it begins a specifier.

    Raises UsageError for unprintable characters.
    """
    if not text.isprintable():
        raise UsageError(f"{text!r}: a systemd unit cannot contain unprintable characters")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def _command(words: Sequence[str]) -> str:
    """Quote a command line for a unit file; $ is doubled too, because it begins a variable."""
    return " ".join(each if _is_plain(each) else word(each).replace("$", "$$") for each in words)


def _is_plain(text: str) -> bool:
    return all(letter.isalnum() or letter in "/-_.,+:=" for letter in text) and text.isascii()
