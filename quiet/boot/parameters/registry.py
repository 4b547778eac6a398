"""Register all known kernel parameters by name."""

from __future__ import annotations

from quiet.boot.parameters import cpus, system
from quiet.boot.parameters.cmdline import name
from quiet.boot.parameters.parameter import BootParameter

PARAMETERS: tuple[BootParameter, ...] = (*cpus.TABLE, *system.TABLE)
BY_NAME: dict[str, BootParameter] = {item.name.replace("-", "_"): item for item in PARAMETERS}


def known(word: str) -> BootParameter | None:
    """The parameter of a word, in any spelling; None for one that is not in the table."""
    return BY_NAME.get(name(word))
