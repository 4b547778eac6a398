"""Look up the remedy for a cause, or the reason why there is none. The first match wins.

A remedy names a knob of `quiet` if one helps (`quiet explain KNOB`), a kernel parameter if only the command line helps,
or neither; its `text` then explains the origin of the cause and the user's options. Sources: the kernel's
Documentation/timers/no_hz.rst, Documentation/admin-guide/kernel-per-CPU-kthreads.rst,
Documentation/admin-guide/kernel-parameters.txt, and the functions that the texts name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from quiet.noise.attribute import Cause
from quiet.noise.remedies import interrupts, outside, tasks, timers
from quiet.noise.remedies.remedy import BOOT, KNOB, NONE, Remedies, Remedy

_BY_KIND: Remedies = {**timers.REMEDIES, **interrupts.REMEDIES, **tasks.REMEDIES, **outside.REMEDIES}
REMEDIES = tuple(item._replace(kind=kind) for kind, items in _BY_KIND.items() for item in items)


def remedy(
    cause: Cause,
    cpu: int,
    in_place: Collection[str] = (),
    cpus: str = "",
    absent: Mapping[str, str] | None = None,
    naming: str = "",
) -> Remedy:
    """The remedy for a cause on a CPU.

    `in_place`: applied knobs and kernel parameters of the running kernel. A setting that is already in place is not a
    remedy (NONE): the text then explains why the cause occurs anyway. A setting that this host lacks is not a remedy
    either (`absent`, with the reasons). `cpus`: the CPU list for kernel parameters, by default this CPU. `naming`: a
    clause that explains how to make the kernel name a cause that is only counted. Raises LookupError for an unknown
    kind.
    """
    lacking = absent or {}
    for item in REMEDIES:
        if item.kind != cause.kind or not re.fullmatch(item.pattern, cause.name) or not re.fullmatch(item.by, cause.by):
            continue
        names = {"cpu": cpu, "cpus": cpus or str(cpu), "naming": naming}
        filled = item._replace(what=item.what.format(**names), text=item.text.format(**names))
        name = filled.what.partition("=")[0]
        if name and name in lacking:
            return filled._replace(how=NONE, what="", text=f"{filled.text}; {lacking[name]}")
        if name not in in_place:
            return filled
        what = f"knob {filled.what}" if filled.how == KNOB else filled.what
        named = f"{what} is already in place, and this occurred anyway: {filled.text}"
        return filled._replace(how=NONE, what="", text=filled.still.format(**names) or named)
    raise LookupError(f"no remedy for the kind {cause.kind}")  # the table ends each kind with ".*"


def stopped_by(name: str) -> list[Remedy]:
    """The remedies that consist of this knob or kernel parameter, for `quiet explain`."""
    removers = (item for item in REMEDIES if item.how in (KNOB, BOOT) and item.what.partition("=")[0] == name)
    return [item._replace(text=_of_any(item.text)) for item in removers]


def _of_any(text: str) -> str:
    return text.replace("{cpus}", "LIST").replace("{cpu}", "N").replace("{naming}", "")
