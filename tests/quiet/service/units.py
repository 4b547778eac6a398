"""Helpers shared by the tests of the service: paths, and parsed units."""

from __future__ import annotations

import configparser
import os
import shlex
from pathlib import Path

UNITS = "etc/systemd/system"
UNIT = f"{UNITS}/quiet.service"
AFTER = f"{UNITS}/quiet-after.target"
LINK = f"{UNITS}/multi-user.target.wants/quiet.service"
VENV = "home/u/venv"
PROGRAM = {f"{VENV}/bin/python3.11": "", f"{VENV}/lib/quiet/__init__.py": "", f"{VENV}/lib/site/other/": ""}
MINE = 'name = "mine"\n[knobs]\nksm = "quiet"\n'


def listing(root: Path) -> dict[str, tuple[int, str]]:
    """Every path with its mode and content."""
    found = {}
    for path in root.rglob("*"):
        content = os.readlink(path) if path.is_symlink() else path.read_text() if path.is_file() else ""
        found[str(path.relative_to(root))] = (path.lstat().st_mode, content)
    return found


def unit(root: Path, file: str = UNIT) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(root / file)
    return parser


def start(root: Path) -> list[str]:
    return shlex.split(unit(root)["Service"]["ExecStart"])
