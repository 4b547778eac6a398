"""Install a systemd unit that resumes a study after each boot until it ends, for studies whose reset is a reboot.

The unit consists of a file in /etc/systemd/system and a link that enables it; both are removed when the study has ended
or is interrupted. Both survive a kill or a power failure, so the next boot resumes the study. See systemd.unit(5),
systemd.service(5).
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from cbench.store import trust
from cbench.study.model import CALLED
from cbench.study.resets.reset import SYSTEMD_RUNNING
from quiet import Refused

UNITS = Path("/etc/systemd/system")
TARGET = "multi-user.target"


def name(data: Path) -> str:
    """The name of the unit for a study's store, unique to the store."""
    return f"cbench-study-{hashlib.sha256(os.fsencode(data.absolute())).hexdigest()[:12]}.service"


def unit(data: Path, environment: Mapping[str, str], kind: str = "order") -> str:
    """The unit's text. It has no After=, because a reset by reboot itself waits until the boot is complete."""
    command = [sys.executable, "-P", "-m", "cbench", kind, "resume", str(data.absolute())]
    check = [sys.executable, "-P", "-m", "cbench.store.trust", str(data.absolute())]
    kept = [f"{key}={environment[key]}" for key in ("PATH", "HOME", "LANG", "LC_ALL", "SUDO_UID") if key in environment]
    return "\n".join(
        [
            f"# Written by `cbench {kind} run`; removed when the {CALLED[kind]} has ended.",
            "[Unit]",
            f"Description=cbench resumes the {CALLED[kind]} {_escaped(str(data.absolute()))}",
            "[Service]",
            "Type=exec",
            f"WorkingDirectory={_escaped(str(data.absolute().parent))}",
            *(f"Environment={_quoted(each)}" for each in kept),
            f"ExecStartPre={' '.join(_quoted(each, '$') for each in check)}",
            f"ExecStart={' '.join(_quoted(each, '$') for each in command)}",
            "[Install]",
            f"WantedBy={TARGET}",
            "",
        ]
    )


def obstacle() -> str:
    """The reason why a study cannot resume automatically on this host; "" if it can."""
    if not SYSTEMD_RUNNING.is_dir():
        return "automatic resume needs a host that was booted by systemd"
    return "" if os.geteuid() == 0 else "automatic resume needs a systemd unit, which only root may create"


def install(data: Path, environment: Mapping[str, str], units: Path = UNITS, kind: str = "order") -> str:
    """Make the study resume after each boot; returns the unit's name. Raises Refused if the unit cannot be
    installed, or if a user who is not trusted can change the store.
    """
    trust.check(data)
    file = units / name(data)
    link = units / f"{TARGET}.wants" / file.name
    try:
        link.parent.mkdir(exist_ok=True)
        file.write_text(unit(data, environment, kind))
        link.unlink(missing_ok=True)
        link.symlink_to(file)
        os.sync()
    except OSError as error:
        raise Refused(
            f"the {CALLED[kind]} cannot resume by itself after a reboot: {error.filename}: {error.strerror}"
        ) from None
    return file.name


def installed(data: Path, units: Path = UNITS) -> bool:
    """Whether the study resumes after each boot."""
    return (units / name(data)).exists()


def remove(data: Path, units: Path = UNITS) -> None:
    """Stop resuming the study automatically. Idempotent."""
    file = units / name(data)
    for path in (units / f"{TARGET}.wants" / file.name, file):
        path.unlink(missing_ok=True)


def _escaped(text: str) -> str:
    """Escape a value for a unit's file, in which % begins a specifier."""
    return text.replace("%", "%%").replace("\n", " ")


def _quoted(text: str, more: str = "") -> str:
    """Quote one word for a unit's file (systemd.syntax(7), Quoting; in ExecStart=, a dollar is special too)."""
    word = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("\n", "\\n")
    for each in more:
        word = word.replace(each, each * 2)
    return f'"{word}"'
