"""Levels that can never be set on this host, found before anything runs."""

from __future__ import annotations

import os

from cbench.screen import host_quiet
from cbench.screen.model import Level, Screen
from cbench.study.inherited import inherited
from quiet import cpulist, journal
from quiet.errors import Refused
from quiet.host import Reader


def check(screen: Screen, label: str) -> None:
    """Raises Refused with the level and why."""
    reader = Reader()
    for factor in screen.factors:
        for level in factor.levels:
            if why := _why(reader, screen, level):
                raise Refused(f"{label}: {factor.name}={level.name} cannot be set here: {why}")


def _why(reader: Reader, screen: Screen, level: Level) -> str:
    if host_quiet.applies(level):
        record = journal.load(reader)
        if record is not None:
            return f"'{record.profile}' is applied to this host; run `quiet restore` first"
        if why := host_quiet.obstacle(reader, level, screen.cpus or None):
            return why
        if os.geteuid() != 0:
            return "it changes the host, which only root may: run it with sudo"
    try:
        with inherited(cpulist.parse(level.cpus) if level.cpus else None, level.aslr):
            pass
    except Refused as error:
        return str(error)
    return ""
