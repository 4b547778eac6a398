"""Register all known kernel parameters by name."""

from __future__ import annotations

from quiet.boot.parameters import cpus, system
from quiet.boot.parameters.cmdline import name
from quiet.boot.parameters.parameter import BootParameter

PARAMETERS: tuple[BootParameter, ...] = (*cpus.TABLE, *system.TABLE)
BY_NAME: dict[str, BootParameter] = {item.name.replace("-", "_"): item for item in PARAMETERS}


def known(word: str) -> BootParameter | None:
    """The parameter that a word sets, in any spelling; None if the table does not contain it."""
    return BY_NAME.get(name(word))
