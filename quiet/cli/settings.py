"""What each command of `quiet` does: results to stdout, and the exit code. No option parsing, no Typer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from quiet.console import emit_json
from quiet.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from quiet.settings.apply import Receipt
    from quiet.settings.restore import Outcome


def status(root: str = "/", as_json: bool = False) -> int:
    """This host: its CPUs, what it can and cannot do, and whether a profile is applied."""
    from quiet.cli import boot, json_output
    from quiet.host.reader import Reader
    from quiet.kernel import check, config, fragments, report
    from quiet.machine.facts import Facts
    from quiet.service import service
    from quiet.settings import journal

    reader = Reader(root)
    state = json_output.status(Facts(reader), journal.load(reader))
    state["service"] = json_output.service(service.installed(reader))
    state["boot"] = boot.status(reader)
    built = config.running(reader)
    answers = check.check(fragments.load(), built, reader)
    if as_json:
        emit_json({**state, "kernel_options": report.short(answers, built)})
    else:
        from quiet.cli import text

        text.status(state, {"kernel options": report.line(answers, built)})
    return 0


def plan(profile: str = "bench", cpus: str | None = None, root: str = "/", as_json: bool = False) -> int:
    """Every change that apply would make, with current and wanted value and why. Writes nothing, needs no root."""
    from quiet import cpulist
    from quiet.host.reader import Reader
    from quiet.settings import journal
    from quiet.settings.profile import load
    from quiet.settings.verify import plan_now

    reader = Reader(root)
    made, record = plan_now(reader, load(profile), cpus)
    if record is None and (other := journal.load(reader)):
        applied = f"{other.profile} on CPUs {cpulist.format(other.cpus.isolated)}"
        sys.stderr.write(f"quiet: note: {applied} is applied now; restore it before you apply this plan\n")
    if as_json:
        from quiet.cli import json_output

        emit_json(json_output.plan(made, record is not None))
    else:
        from quiet.cli import text

        text.plan(made, record is not None)
    return 0


def apply(profile: str, cpus: str | None, root: str, as_json: bool) -> int:
    """Apply a profile. Twice is the same as once. Exit 1 when something could not be applied."""
    from quiet.cli import json_output, text
    from quiet.host.host import Host
    from quiet.settings.apply import apply as do
    from quiet.settings.profile import load

    receipt = do(Host(root), load(profile), cpus)
    if as_json:
        emit_json(json_output.receipt(receipt))
    else:
        text.receipt(receipt)
    return 1 if receipt.failures else 0


def restore(force: bool, keep: bool, root: str, as_json: bool) -> int:
    """Put everything back as it was found. Exit 4 when something could not be."""
    from quiet.cli import json_output, text
    from quiet.host.host import Host
    from quiet.settings.restore import restore as do

    if force and keep:
        raise UsageError("--force and --keep contradict each other; give one of them")
    outcome = do(Host(root), force, keep)
    if as_json:
        emit_json(json_output.restore(outcome))
    else:
        text.restored(outcome)
    return 0 if outcome.complete else 4


def install_service(profile: str, cpus: str | None, trust: bool, root: str, as_json: bool) -> int:
    """Have systemd apply a profile after each boot, and restore when its unit is stopped."""
    from quiet.cli import json_output, text
    from quiet.host.host import Host
    from quiet.service import service
    from quiet.settings.profile import load

    done = service.install(Host(root), load(profile), cpus, trust)
    if as_json:
        emit_json(json_output.service_done(done))
    else:
        text.service_installed(done)
    return 0


def remove_service(root: str, as_json: bool) -> int:
    """Stop that unit and take it away. Exit 4 when what it had applied could not be put back."""
    from quiet.cli import json_output, text
    from quiet.host.host import Host
    from quiet.service import service

    done = service.remove(Host(root))
    if as_json:
        emit_json(json_output.service_done(done))
    else:
        text.service_removed(done)
    return 4 if done.left else 0


def run(command: Sequence[str], profile: str, cpus: str | None) -> int:
    """Apply, run a command on the isolated CPUs, restore. Exits with the command's exit code, or 4 (see restore)."""
    from quiet.cli import text
    from quiet.cpulist import format as cpu_list
    from quiet.settings.profile import load
    from quiet.settings.run import run as do

    def applied(receipt: Receipt) -> None:
        isolated = cpu_list(receipt.cpus.isolated)
        changes = text.counted(len(receipt.changes), "change")
        text.note(f"{receipt.profile} on CPUs {isolated}: {changes}, {len(receipt.skips)} left alone")
        for failure in receipt.failures:
            text.note(f"could not be applied: {failure.target}: {failure.reason}")

    def restored(outcome: Outcome | None) -> None:
        if outcome is None:
            text.note("the profile stays applied: it was before, or another quiet run still uses it")
        elif outcome.complete:
            text.note(f"restored {text.counted(outcome.restored, 'setting')}, nothing left changed")
        for left in (outcome.conflicts + outcome.failures) if outcome else ():
            text.note(f"not restored: {left.target}: {left.reason}")

    return do(load(profile), cpus, command, applied, restored)


def profiles(as_json: bool) -> int:
    """The bundled profiles."""
    from quiet.cli import json_output, text
    from quiet.settings.profile import bundled, load

    found = [load(name) for name in bundled()]
    if as_json:
        emit_json({"profiles": [json_output.profile(p.name, p.summary, p.source, p.knobs) for p in found]})
    else:
        text.columns([(p.name, p.summary) for p in found], "")
    return 0


def explain(knob: str | None, as_json: bool) -> int:
    """What a knob does, why, and what the kernel documents; without a name, the list of knobs."""
    from quiet.cli import json_output, text
    from quiet.knobs.registry import BY_NAME, KNOBS

    if knob is None:
        if as_json:
            emit_json({"knobs": [json_output.knob(item) for item in KNOBS]})
        else:
            text.columns([(item.name, item.title) for item in KNOBS], "")
        return 0
    from quiet.noise.remedies import stopped_by

    stops = list(dict.fromkeys(item.text for item in stopped_by(knob)))
    from quiet.cli import boot

    if knob not in BY_NAME:
        stops = stops or [item.text for item in stopped_by(knob.replace("-", "_"))]
        if not boot.explain(knob, stops, as_json):
            raise UsageError(f"unknown knob '{knob}'; `quiet explain` lists the knobs")
    elif as_json:
        emit_json({**json_output.knob(BY_NAME[knob]), "stops": stops, "boot": boot.shape(knob)})
    else:
        text.explain(BY_NAME[knob], stops)
        boot.explain(knob, (), False)
    return 0


def record(file: str, root: str, unmasked: bool, as_json: bool) -> int:
    """Record this machine as a tree for --root: the files that plan and status read, masked unless told otherwise."""
    from quiet.cli import text
    from quiet.record.recorder import Recording
    from quiet.record.recorder import record as do
    from quiet.record.redact import LEFT_OUT

    done = do(Recording(root), file, not unmasked)
    left_out = [] if unmasked else LEFT_OUT
    if as_json:
        emit_json({"file": file, "files": done.files, "left_out": list(left_out), "unreadable": list(done.closed)})
        return 0
    text.out(f"{file}: {done.files} files; unpack it with tar -xzf and give the folder as --root")
    for words in left_out or [
        "nothing: names of tasks, addresses, identifiers, the whole command line and boot loaders' files are in"
    ]:
        text.note(f"left out: {words}")
    if done.closed:
        text.note(f"{text.counted(len(done.closed), 'file')} could not be read without root and are not in it")
    return 0
