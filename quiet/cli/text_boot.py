"""Print the text of `quiet boot`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from quiet.boot.parameters.merge import ADD, CHANGE, DROP, KEEP, SKIP, MergeRow
from quiet.cli.text import columns, counted, cpus, note, out
from quiet.console import emit, printable

if TYPE_CHECKING:
    from quiet.boot.apply import BootReceipt
    from quiet.boot.loaders.loader import Command
    from quiet.boot.once import Once
    from quiet.boot.parameters.parameter import BootParameter
    from quiet.boot.plan import BootPlan

_HEADINGS = {
    ADD: "to add",
    CHANGE: "to change",
    DROP: "to remove",
    KEEP: "already present",
    SKIP: "left alone",
}


def plan(result: BootPlan) -> None:
    """Print a boot plan: boot loader, command lines, parameters with reasons, diffs of files, and commands."""
    out(f"profile **{result.profile}**")
    cpus(result.cpus)
    others = f"; also installed: {', '.join(result.others)} (choose with --loader)" if result.others else ""
    out(f"boot loader        **{result.loader.title}**   ({result.found}{others})")
    out()
    columns(
        [
            ("running now", result.running or "unknown"),
            ("configured", str(result.before) or "nothing"),
            ("planned", str(result.merged.line)),
        ],
        "",
    )
    rows(result.merged.rows)
    out()
    if result.settled:
        out(
            "**no change**: "
            + (
                "the running kernel already has these parameters"
                if result.in_force
                else "**reboot**: the next boot will have these parameters"
            )
        )
    for item in result.files:
        for line in item.diff.splitlines():  # out() would take ** for bold
            emit(printable(f"  {line}") + "\n")
    if not result.settled:
        commands(result.steps.commands, "command")
        out("the change takes effect at the next boot; `quiet boot remove` restores every file to its original content")


def rows(items: Sequence[MergeRow]) -> None:
    """Print parameters by action, each with its reason."""
    for action, title in _HEADINGS.items():
        group = [item for item in items if item.action == action]
        if not group:
            continue
        out()
        out(f"**{title}** ({len(group)}):")
        for item in group:
            change = f"{item.current} -> {item.wanted}" if action == CHANGE else item.wanted or item.current
            out(f"  **{item.current if action == KEEP else change}**: {item.why}")


def commands(items: Sequence[Command], title: str) -> None:
    """Print commands, one per line."""
    for item in items:
        out(f"{title}: **{shlex.join(item)}**")


def applied(done: BootReceipt) -> None:
    """Print the result of an apply."""
    if done.plan and done.plan.settled:
        out("no change: the boot configuration already has these parameters")
    else:
        _did(done, "wrote")
        out("**reboot** for this to take effect; `quiet boot remove` restores every file to its original content")


def removed(done: BootReceipt) -> None:
    """Print the result of a remove."""
    if done.record is None and done.files:
        _did(done, "removed quiet's part from")
        out("quiet has no record of its changes, so only the text between its markers could be removed")
        return
    if done.record is None:
        out("the boot configuration contains nothing from quiet: **nothing left changed**")
        return
    _did(done, "restored")
    for path, reason in done.conflicts:
        out(f"  {path}: {reason}")
    if done.conflicts:
        out("every other file has its original content; the next boot uses nothing from quiet")
    elif (done.ran or done.not_run) and not done.record.generated:
        out("**every file that quiet wrote has its original content**; the commands rebuild images or deployments,")
        out("which quiet does not compare; the running kernel keeps its command line until a reboot")
    else:
        out("**nothing left changed**: every file has its original content;")
        out("the running kernel keeps its command line until a reboot")


def _did(done: BootReceipt, verb: str) -> None:
    for path in done.files:
        out(f"  {verb} {path}")
    commands(done.ran, "  ran")
    if done.not_run:
        note(f"a recorded tree runs no commands; not run: {counted(len(done.not_run), 'command')}")
        commands(done.not_run, "  to run")


def once(result: Once, loaded: bool, starting: bool) -> None:
    """Print the kernel that `quiet boot once` loads and starts."""
    if result.settled:
        out("**no change**: the running kernel already has these parameters")
        return
    cpus(result.cpus)
    columns(
        [("kernel", result.kernel), ("initrd", result.initrd or "none"), ("command line", str(result.merged.line))],
        "",
    )
    rows(result.merged.rows)
    out()
    load, start = shlex.join(result.load) or "kexec_file_load(2)", shlex.join(result.start) or "reboot(2)"
    if starting:
        out("loaded; **the new kernel starts now**. The boot after it is unaffected: nothing on the disk was changed")
    elif loaded:
        out(f"loaded; **{start}** starts it. The boot after it is unaffected: nothing on the disk was changed")
    else:
        commands([result.load] if result.load else [], "to run")
        out(f"a recorded tree loads nothing; a host would run {load.partition(' ')[0]}, then {start}")


def explain(name: str, stops: Sequence[str], parameter: BootParameter | None) -> None:
    """Print a kernel parameter.

    `stops`: the interruptions that it removes. `parameter`: None if the table of parameters does not contain it.
    """
    if parameter is None:
        out(f"**{name}**: a kernel parameter; it takes effect after a reboot")
        columns([("stops", text) for text in stops])
        return
    out(f"**{parameter.name}**: a kernel parameter; it takes effect after a reboot (`quiet boot`)")
    example = f"{parameter.name}={parameter.example}" if parameter.example else parameter.name
    rows = [("why", parameter.why), ("takes", f"{parameter.takes}, such as {example}")]
    rows += [("against", f"{word}, which contradicts it") for word in parameter.against]
    rows += [("not with", f"{word}, a safeguard that is kept") for word in parameter.yields]
    rows += [("needless", f"with {word}, which has the same effect") for word in parameter.covered]
    rows += [("stops", text) for text in dict.fromkeys(stops)]
    rows += [("at run time", parameter.runtime)] if parameter.runtime else []
    rows += [("risk", parameter.risk)] if parameter.risk else []
    columns([*rows, ("kernel docs", parameter.document)])
