"""Levels that can never be set on this host, found before anything runs."""

from __future__ import annotations

import os

from cbench.screen.config.model import Level, Screen
from cbench.screen.execute import quiet_levels
from cbench.study.process.process_attributes import inherited
from quiet import cpulist
from quiet.errors import Refused
from quiet.host.reader import Reader
from quiet.settings import journal


def check(screen: Screen, label: str) -> None:
    """Raises Refused with the level and why."""
    reader = Reader()
    for factor in screen.factors:
        for level in factor.levels:
            if why := _why(reader, screen, level):
                raise Refused(f"{label}: {factor.name}={level.name} cannot be set here: {why}")


def _why(reader: Reader, screen: Screen, level: Level) -> str:
    if quiet_levels.applies(level):
        record = journal.load(reader)
        if record is not None:
            return f"'{record.profile}' is applied to this host; run `quiet restore` first"
        if why := quiet_levels.obstacle(reader, level, screen.cpus or None):
            return why
        if os.geteuid() != 0:
            return "it changes the host, which only root may: run it with sudo"
    try:
        with inherited(cpulist.parse(level.cpus) if level.cpus else None, level.aslr):
            pass
    except Refused as error:
        return str(error)
    return ""
