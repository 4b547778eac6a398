"""The JSON shapes of `quiet boot`. These keys do not change."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable

from quiet.boot.apply import BootReceipt
from quiet.boot.loaders.loader import Command
from quiet.boot.once import Once
from quiet.boot.parameters.merge import MergeRow
from quiet.boot.parameters.parameter import BootParameter
from quiet.boot.plan import BootPlan, FileChange
from quiet.cli import json_output

Json = dict[str, object]


def plan(made: BootPlan) -> Json:
    """`quiet boot plan --json`."""
    applied = made.record
    return {
        "profile": made.profile,
        "cpus": json_output.cpus(made.cpus),
        "loader": {
            "name": made.loader.name,
            "title": made.loader.title,
            "found": made.found,
            "others": list(made.others),
        },
        "command_line": {
            "running": made.running,
            "configured": str(made.before),
            "planned": str(made.merged.line),
        },
        "parameters": [row(item) for item in made.merged.rows],
        "files": [file(item) for item in made.files],
        "commands": [] if made.settled else commands(made.steps.commands),
        "settled": made.settled,
        "in_force": made.in_force,
        "applied": {"profile": applied.profile, "cpus": applied.cpus, "state": applied.state, "since": applied.time}
        if applied
        else None,
    }


def row(item: MergeRow) -> Json:
    """One parameter: action is keep, add, change, drop or skip."""
    return {
        "parameter": item.parameter,
        "action": item.action,
        "current": item.current or None,
        "wanted": item.wanted or None,
        "why": item.why,
    }


def file(item: FileChange) -> Json:
    """One file, with its change as a unified diff."""
    action = "create" if item.current is None else "remove" if item.wanted is None else "change"
    return {"path": item.path, "action": action, "diff": diff(item)}


def diff(item: FileChange) -> str:
    """A unified diff from the file as it is to the file as it is to be."""
    return "".join(
        difflib.unified_diff(
            _lines(item.current),
            _lines(item.wanted),
            "/dev/null" if item.current is None else item.path,
            "/dev/null" if item.wanted is None else item.path,
            n=1,
        )
    )


def _lines(data: bytes | None) -> list[str]:
    return (data or b"").decode("utf-8", "replace").splitlines(keepends=True)


def commands(items: Iterable[Command]) -> list[str]:
    """Commands as a shell would take them."""
    return [shlex.join(item) for item in items]


def done(what: BootReceipt) -> Json:
    """`quiet boot apply --json` and `quiet boot remove --json`."""
    record = what.record
    return {
        "profile": record.profile if record else None,
        "loader": record.loader if record else None,
        "files": list(what.files),
        "commands": commands(what.ran),
        "not_run": commands(what.not_run),
        "conflicts": [{"path": path, "reason": reason} for path, reason in what.conflicts],
    }


def once(made: Once, loaded: bool, starting: bool) -> Json:
    """`quiet boot once --json`."""
    return {
        "profile": made.profile,
        "cpus": json_output.cpus(made.cpus),
        "kernel": made.kernel,
        "initrd": made.initrd or None,
        "command_line": str(made.merged.line),
        "parameters": [row(item) for item in made.merged.rows],
        "load": shlex.join(made.load) or "kexec_file_load",
        "start": shlex.join(made.start) or "reboot",
        "settled": made.settled,
        "loaded": loaded,
        "starting": starting,
    }


def parameter(item: BootParameter) -> Json:
    """`quiet explain PARAMETER --json`."""
    return {
        "name": item.name,
        "title": "kernel parameter",
        "why": item.why,
        "doc": item.document,
        "takes": item.takes,
        "example": item.example or None,
        "against": list(item.against),
        "covered": list(item.covered),
        "yields": list(item.yields),
        "runtime": item.runtime or None,
        "risk": item.risk or None,
    }
