"""Convert typed results to the JSON of `quiet`. The keys are stable.

to_json converts results whose field names are the keys; the other functions convert all other results.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from quiet import cpulist
from quiet.knobs.effects import effect_seen
from quiet.noise.budgets import Nanoseconds
from quiet.targets import value_types

if TYPE_CHECKING:
    from quiet.boot.apply import BootReceipt
    from quiet.boot.once import Once
    from quiet.boot.parameters.merge import MergeRow
    from quiet.boot.parameters.parameter import BootParameter
    from quiet.boot.plan import BootPlan, FileChange
    from quiet.boot.status import BootStatus
    from quiet.host.queue import Ticket
    from quiet.kernel.check import KernelSummary
    from quiet.knobs.knob import Knob
    from quiet.noise.report import NoiseReport
    from quiet.service.service import Installed, ServiceReceipt
    from quiet.settings.apply import Receipt
    from quiet.settings.plan import Change, Plan, Skipped
    from quiet.settings.profile import Profile
    from quiet.settings.restore import Outcome
    from quiet.settings.status import HostStatus
    from quiet.watch.events import WatchEvent

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]
Json = dict[str, JsonValue]


def to_json(value: object) -> JsonValue:
    """Convert a result to JSON: its fields become keys, and sets of CPUs become lists in the kernel's notation.

    Raises TypeError for a value without a JSON form.
    """
    if isinstance(value, Nanoseconds):
        return round(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, frozenset):
        return cpulist.format(value)
    if isinstance(value, Mapping):
        return {str(key): to_json(item) for key, item in value.items()}
    if names := getattr(value, "_fields", None) or getattr(value, "__dataclass_fields__", None):
        return {name: to_json(getattr(value, name)) for name in names}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    raise TypeError(f"{type(value).__name__} has no JSON form")


def to_object(value: object) -> Json:
    """Convert a result with fields to a JSON object."""
    result = to_json(value)
    assert isinstance(result, dict)
    return result


def fields(item: object, *names: str) -> Json:
    """These fields of a result as a JSON object; a field with an empty text becomes null."""
    return {name: None if (value := getattr(item, name)) == "" else to_json(value) for name in names}


def change(item: Change) -> Json:
    """Convert a change; its current value is given in plain form."""
    current = None if item.current is None else value_types.plain(item.kind, item.current)
    return fields(item, "knob", "target") | {"current": current, "wanted": item.wanted} | fields(item, "why", "label")


def changes(items: Iterable[Change]) -> list[JsonValue]:
    """Convert changes; their current values are given in plain form."""
    return [change(item) for item in items]


def skips(items: Iterable[Skipped]) -> list[JsonValue]:
    """Convert skips, conflicts or failures, each with its reason."""
    return [to_object(item) | {"label": item.label or None} for item in items]


def plan(result: Plan, applied: bool) -> Json:
    """The JSON of `quiet plan --json`."""
    return _planned(result) | {"applied": applied}


def receipt(done: Receipt) -> Json:
    """The JSON of `quiet apply --json`."""
    return _planned(done) | {"failures": skips(done.failures)}


def _planned(result: Plan | Receipt) -> Json:
    return fields(result, "profile", "cpus") | {
        "changes": changes(result.changes),
        "skips": skips(result.skips),
        "boot": {"missing": list(result.missing_boot)},
    }


def verify(result: Plan, applied: bool, measured: NoiseReport | None = None) -> Json:
    """The JSON of `quiet verify --json`; `measured` is None if nothing was measured."""
    return {
        "quiet": not result.changes and not (measured and measured.exceeded),
        "applied": applied,
        "profile": result.profile,
        "cpus": to_json(result.cpus),
        "drift": changes(result.changes),
        "skips": skips(result.skips),
        "noise": to_object(measured) if measured else None,
    }


def restore(outcome: Outcome) -> Json:
    """The JSON of `quiet restore --json`."""
    unrestored: Json = {name: skips(getattr(outcome, name)) for name in ("conflicts", "failures", "damage", "accepted")}
    notes: Json = {"copy": outcome.copy or None, "log_error": outcome.log_error or None}
    return fields(outcome, "profile", "complete", "restored", "gone") | unrestored | notes


def status(
    host: HostStatus,
    installed: Installed | None,
    boot: BootStatus | None,
    kernel_options: KernelSummary,
    tickets: Sequence[Ticket],
) -> Json:
    """The JSON of `quiet status --json`. "queue" lists the runs on the isolated CPUs, then the waiting runs."""
    runs: list[JsonValue] = [fields(each, "pid", "uid", "command", "share", "since", "running") for each in tickets]
    service = fields(installed, "unit", "profile", "cpus", "at_boot") if installed else None
    options = to_json(kernel_options)
    return to_object(host) | {"service": service, "boot": to_json(boot), "kernel_options": options, "queue": runs}


def profile(item: Profile) -> Json:
    """One row of `quiet profiles --json`."""
    return fields(item, "name", "source", "knobs") | {"summary": item.summary}


def knob(item: Knob) -> Json:
    """One row of `quiet explain --json`."""
    return fields(item, "name", "title", "why", "doc", "targets", "after", "risk", "refusals") | {
        "choices": [*item.choices, *(["NUMBER"] if item.numeric else []), *(["LIST"] if item.lists else [])],
        "entangled": item.moves or None,
        "paths": item.paths,
        "kernels": item.kernels or None,
        "effect": effect_seen(item) or None,
    }


def explained_knob(item: Knob, stops: Sequence[str], parameter: BootParameter | None) -> Json:
    """The JSON of `quiet explain KNOB --json`.

    `stops`: the interruptions that the knob removes; `parameter`: the boot parameter of the same name.
    """
    return knob(item) | {"stops": list(stops), "boot": boot_parameter(parameter) if parameter else None}


def explained_parameter(word: str, stops: Sequence[str], parameter: BootParameter | None) -> Json:
    """The JSON of `quiet explain PARAMETER --json`."""
    known = boot_parameter(parameter) if parameter else {"name": word, "title": "kernel parameter"}
    return known | {"stops": list(stops)}


def boot_parameter(item: BootParameter) -> Json:
    """The JSON of a kernel parameter."""
    return {
        "name": item.name,
        "title": "kernel parameter",
        "why": item.why,
        "doc": item.document,
        **fields(item, "takes", "example", "against", "covered", "yields", "runtime", "risk"),
    }


def service(done: ServiceReceipt) -> Json:
    """The JSON of `quiet install-service --json` and `quiet remove-service --json`.

    "ran": whether the commands were run, not only shown.
    """
    return {**fields(done, "unit", "profile", "files", "commands", "ran"), "restored": not done.left}


def watch_event(event: WatchEvent) -> Json:
    """A line of `quiet watch --json`."""
    line: Json = {"time": round(event.time, 3), "event": event.event}
    line |= change(event.change) if event.change else {}
    line |= to_object(event.interruption) if event.interruption else {}
    line |= {key: value for key, value in fields(event, "by", "text", "missing").items() if value is not None}
    return line | (to_object(event.summary) if event.summary else {})


def boot_plan(result: BootPlan) -> Json:
    """The JSON of `quiet boot plan --json`."""
    applied = result.record
    return {
        "profile": result.profile,
        "cpus": to_json(result.cpus),
        "loader": fields(result.loader, "name", "title") | {"found": result.found, "others": list(result.others)},
        "command_line": {
            "running": result.running,
            "configured": str(result.before),
            "planned": str(result.merged.line),
        },
        "parameters": _boot_rows(result.merged.rows),
        "files": [_file(item) for item in result.files],
        "commands": [] if result.settled else _commands(result.steps.commands),
        **fields(result, "settled", "in_force"),
        "applied": fields(applied, "profile", "cpus", "state") | {"since": applied.time} if applied else None,
    }


def boot_receipt(done: BootReceipt) -> Json:
    """The JSON of `quiet boot apply --json` and `quiet boot remove --json`."""
    return {
        "profile": done.record.profile if done.record else None,
        "loader": done.record.loader if done.record else None,
        "files": list(done.files),
        "commands": _commands(done.ran),
        "not_run": _commands(done.not_run),
        "conflicts": [{"path": path, "reason": reason} for path, reason in done.conflicts],
    }


def boot_once(result: Once, loaded: bool, starting: bool) -> Json:
    """The JSON of `quiet boot once --json`."""
    return {
        **fields(result, "profile", "cpus", "kernel", "initrd"),
        "command_line": str(result.merged.line),
        "parameters": _boot_rows(result.merged.rows),
        "load": shlex.join(result.load) or "kexec_file_load",
        "start": shlex.join(result.start) or "reboot",
        "settled": result.settled,
        "loaded": loaded,
        "starting": starting,
    }


def _boot_rows(rows: Iterable[MergeRow]) -> list[JsonValue]:
    """Convert the rows of a merge; the action is keep, add, change, drop or skip."""
    return [fields(row, "parameter", "action", "current", "wanted", "why") for row in rows]


def _file(item: FileChange) -> Json:
    action = "create" if item.current is None else "remove" if item.wanted is None else "change"
    return {"path": item.path, "action": action, "diff": item.diff}


def _commands(items: Iterable[tuple[str, ...]]) -> list[JsonValue]:
    return [shlex.join(item) for item in items]
