"""What a profile wants on the command line of this host."""

from __future__ import annotations

from collections.abc import Iterable

from quiet import cpulist
from quiet.boot.parameters.cmdline import check
from quiet.errors import UsageError
from quiet.machine.cpu_selection import CpuPartition

_PLACES = ("{isolated}", "{housekeeping}")


def words(parameters: Iterable[str], cpus: CpuPartition, source: str) -> list[str]:
    """The parameters with this host's CPUs in the places of {isolated} and {housekeeping}. Raises UsageError."""
    found = {"{isolated}": cpulist.format(cpus.isolated), "{housekeeping}": cpulist.format(cpus.housekeeping)}
    made = []
    for parameter in parameters:
        word = parameter
        for place in _PLACES:
            word = word.replace(place, found[place])
        if "{" in word:
            raise UsageError(f"{source}: '{parameter}': the known places are {', '.join(_PLACES)}")
        made.append(check(word, source))
    return made
