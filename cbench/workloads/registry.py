"""Register the built-in workloads, and parse their parameters.

Each workload has a Python function that computes its result and shares no code with C. A C file in cbench/c/workloads
exports the workload's descriptor.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Iterable

from cbench.model import Parameter, Params, Workload
from cbench.workloads import branches, caches, floats, kernel, screening, thesis
from quiet import UsageError, did_you_mean

WORKLOADS: tuple[Workload, ...] = (
    *thesis.WORKLOADS,
    *caches.WORKLOADS,
    *floats.WORKLOADS,
    *branches.WORKLOADS,
    *kernel.WORKLOADS,
    *screening.WORKLOADS,
)

USER_PARAMETERS = (Parameter("n", 1, 1, "passed to the function unchanged", 0, 2**63 - 1),)


def find(name: str) -> Workload:
    """The built-in workload with this name. Raises UsageError, with all names, if there is none."""
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    known = ", ".join(workload.name for workload in WORKLOADS)
    close = did_you_mean(name, (workload.name for workload in WORKLOADS))
    raise UsageError(f"unknown workload {name!r}: use {known}, FILE.c:FUNCTION or LIB.so:FUNCTION{close}")


def as_command(word: str) -> str:
    """A hint, to append to an error, on how to measure a word as a command; "" if the word is no program."""
    program = next((each for each in (word, f"./{word}") if shutil.which(each)), None)
    return "" if program is None else f"; to measure a command: cbench run -- {shlex.quote(program)}"


def parse_settings(texts: Iterable[str]) -> dict[str, int]:
    """Parse texts such as "n=1000" into values by name. Raises UsageError for a malformed text."""
    settings: dict[str, int] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{text!r}: write a parameter as NAME=NUMBER, for example n=1000")
        if not re.fullmatch("-?[0-9][0-9_]{,39}", value):  # int() would also accept line breaks and non-ASCII digits
            raise UsageError(f"{name}: {value!r} is not a whole number; write, for example, {name}=1000")
        settings[name] = int(value.replace("_", ""))
    return settings


def parameters(workload: Workload, settings: Params, quick: bool) -> dict[str, int]:
    """The workload's parameters: the user's settings, and defaults (`quick`: smaller ones) for all others. Raises
    UsageError for an invalid setting.
    """
    chosen = {p.name: p.quick if quick else p.default for p in workload.parameters}
    for parameter in workload.parameters:
        value = settings.get(parameter.name, chosen[parameter.name])
        within = parameter.minimum <= value <= parameter.maximum
        if not within or value % parameter.multiple:
            span = f"from {parameter.minimum:,} to {parameter.maximum:,}"
            raise UsageError(
                f"--param {parameter.name}={value}: {workload.name} takes {parameter.name} ({parameter.meaning}) "
                f"{f'in multiples of {parameter.multiple}' if within else span}"
            )
        chosen[parameter.name] = value
    if workload.check and (wrong := workload.check(chosen)):
        raise UsageError(f"{workload.name}: {wrong}")
    return chosen


def check_settings(workloads: Iterable[Workload], settings: Params) -> None:
    """Raise UsageError for a setting that is a parameter of none of these workloads."""
    chosen = tuple(workloads)
    known = sorted({p.name for workload in chosen for p in workload.parameters})
    for name in settings:
        if name not in known:
            takers = ", ".join(workload.name for workload in chosen)
            take = "takes" if len(chosen) == 1 else "take"
            raise UsageError(f"--param {name}: unknown; {takers} {take} {', '.join(known)}")


def expected_output(workload: Workload, params: Params) -> int | None:
    """The value that every trial must return; None if Python cannot compute it or would take too long."""
    if workload.expected is None or params["n"] > workload.check_limit:
        return None
    return workload.expected(params)
