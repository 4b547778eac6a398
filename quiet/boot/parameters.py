"""Every kernel parameter that is known here, by name."""

from __future__ import annotations

from quiet.boot import table_cpus, table_memory, table_power, table_time
from quiet.boot.parameter import Parameter
from quiet.boot.words import name

PARAMETERS: tuple[Parameter, ...] = (*table_cpus.TABLE, *table_time.TABLE, *table_power.TABLE, *table_memory.TABLE)
BY_NAME: dict[str, Parameter] = {item.name.replace("-", "_"): item for item in PARAMETERS}


def known(word: str) -> Parameter | None:
    """What is known of a word's parameter, in whichever spelling; None for one that is not in the table."""
    return BY_NAME.get(name(word))
