"""The text of the systemd unit that applies a profile after each boot. Sources: systemd.unit(5), systemd.service(5).

Its head says what belongs to it: the profile, the CPUs and every file and folder that was made for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import quiet
from quiet.errors import UsageError
from quiet.host.reader import Reader

NAME, AFTER = "quiet.service", "quiet-after.target"
FOLDER = "/etc/systemd/system"
TARGET = "multi-user.target"
MARK = "# Made by `quiet install-service`; `quiet remove-service` takes it away."
FOLDERS = (
    *(FOLDER, "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system"),
    *("/lib/systemd/system", "/run/systemd/generator.late"),
)
"""Where systemd looks for units, as far as packages and administrators use them."""

_FIRST = (  # what sets kernel settings, requests interrupts or runs an administrator's own lines, where it is there
    *("systemd-modules-load.service", "systemd-sysctl.service", "systemd-tmpfiles-setup.service"),
    *("systemd-udev-settle.service", "network.target", "network-online.target", "rc-local.service"),
)
_RIVALS = (
    *("tuned", "tuned-ppd", "power-profiles-daemon", "tlp", "auto-cpufreq", "cpupower", "cpufrequtils", "loadcpufreq"),
    *("ondemand", "system76-power", "thermald", "laptop-mode", "irqbalance", "numad", "ksm", "ksmtuned", "rtirq"),
    *("saptune", "sapconf", "sysfsutils"),
)


def text(reader: Reader, profile: str, cpus: str | None, made: Sequence[str]) -> str:
    """The unit. `profile` is a bundled name or an absolute path; `made` are the paths that removal takes away."""
    # Of the virtual environment that this runs in; not from the folder it is started in (-P), and it leaves no
    # compiled modules beside those of another user (-B).
    program = [sys.executable, "-P", "-B", "-m", "quiet"]
    chosen = ["--cpus", cpus] if cpus else []
    needed = dict.fromkeys([sys.executable, os.path.realpath(sys.executable), os.path.dirname(quiet.__file__)])
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
        f"RequiresMountsFor={' '.join(word(path) for path in needed)}",
        "[Service]",
        "Type=oneshot",
        "RemainAfterExit=yes",
        "# 1: some settings could not be applied. The others are, and `quiet verify` says which.",
        "SuccessExitStatus=1",
        f"ExecStart={_command([*program, 'apply', '--profile', profile, *chosen])}",
        f"ExecStop={_command([*program, 'restore'])}",
        "[Install]",
        f"WantedBy={TARGET}",
    ]
    return "\n".join([*lines, ""])


def after(reader: Reader) -> str:
    """The target that is reached when all is up that would change settings again; of the daemons those that are there.

    The service is not ordered after them itself. When it stops, restoring starts some of them, and systemd lets a
    start wait for the stop of whatever it is ordered with, in either direction: each would wait for the other.
    """
    names = [*_FIRST, *(name for name, _ in _rivals(reader))]
    head = [MARK, "[Unit]", "Description=What quiet waits for, because it would change settings again"]
    return "\n".join([*head, f"After={' '.join(names)}", ""])


def _rivals(reader: Reader) -> list[tuple[str, str]]:
    return [(f"{name}.service", found) for name in _RIVALS if (found := _unit(reader, name)) is not None]


def _late(reader: Reader) -> bool:
    """Whether a rival waits for multi-user.target itself, as TLP does.

    Then the service has to do that too, or there is a cycle; without need it should not, so that what waits for the
    service can be part of that target.
    """
    return any(_is_after_target(found) for _, found in _rivals(reader))


def _unit(reader: Reader, name: str) -> str | None:
    """The text of an installed service, "" of one that is only an init script; None when it is not there, or masked."""
    for folder in FOLDERS:
        found = reader.text(f"{folder}/{name}.service")
        if found is not None:
            return found or None
    return "" if reader.exists(f"/etc/init.d/{name}") else None


def _is_after_target(unit: str) -> bool:
    lines = (line.partition("=") for line in unit.splitlines())
    return any(key.strip() == "After" and TARGET in names.split() for key, _, names in lines)


def word(text: str) -> str:
    """One word of a unit's file, quoted (systemd.syntax(7)); % begins a specifier."""
    if not text.isprintable():
        raise UsageError(f"{text!r}: a unit cannot hold such a word")
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") + '"'


def _command(words: Sequence[str]) -> str:
    """A command line: there a dollar is special too."""
    return " ".join(each if _is_plain(each) else word(each).replace("$", "$$") for each in words)


def _is_plain(text: str) -> bool:
    return all(letter.isalnum() or letter in "/-_.,+:=" for letter in text) and text.isascii()
