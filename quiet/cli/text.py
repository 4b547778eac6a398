"""Print the text of `quiet`: bold on a terminal, plain elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from quiet import cpulist
from quiet.console import emit, emit_json, printable, say
from quiet.knobs.effects import effect_seen
from quiet.knobs.registry import BY_NAME
from quiet.targets import value_types

if TYPE_CHECKING:  # render a plan without loading the modules that apply it, to keep startup fast
    from quiet.cli.json_output import Json
    from quiet.knobs.knob import Knob
    from quiet.machine.cpu_selection import CpuPartition
    from quiet.settings.apply import Receipt
    from quiet.settings.plan import Change, Plan, Skipped
    from quiet.settings.restore import Outcome

_Result = TypeVar("_Result")
ON_THE_HOST = "on the host, not in this container"
_FEW = 3  # number of targets shown per knob; the others are counted


def out(text: str = "") -> None:
    """Print a line; `**word**` is bold on a terminal.

    rich is loaded only for a terminal, because it doubles the startup time.
    """
    if sys.stdout.isatty():
        from rich.console import Console
        from rich.text import Text

        parts = printable(text).split("**")
        line = Text()
        for number, part in enumerate(parts):
            line.append(part, style="bold" if number % 2 else "")
        Console(soft_wrap=True, highlight=False, emoji=False).print(line)
    else:
        emit(text.replace("**", "") + "\n")


def show(result: _Result, as_json: bool, to_json: Callable[[_Result], Json], words: Callable[[_Result], None]) -> None:
    """Print a result as one JSON object or as text."""
    if as_json:
        emit_json(to_json(result))
    else:
        words(result)


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 change", "2 changes"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def note(text: str) -> None:
    """Print a message to stderr, separate from the result."""
    say(f"quiet: {text}")


def columns(rows: Sequence[Sequence[str]], indent: str = "  ") -> None:
    """Print rows with aligned columns; the last column is not padded."""
    if not rows:
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        out((indent + "  ".join([*cells, row[-1]])).rstrip())


def cpus(choice: CpuPartition) -> None:
    """Print the CPU sets, with the reason for the choice."""
    out(f"isolated CPUs      **{cpulist.format(choice.isolated)}**   ({choice.why})")
    out(f"housekeeping CPUs  {cpulist.format(choice.housekeeping)}")


def plan(result: Plan, applied: bool) -> None:
    """Print every change of a plan, grouped by knob, and every target left alone, grouped by reason."""
    out(f"profile **{result.profile}**{' (applied)' if applied else ''}")
    cpus(result.cpus)
    out()
    if result.changes:
        knobs = len({change.knob for change in result.changes})
        out(f"**{counted(len(result.changes), 'change')}** by {counted(knobs, 'knob')}:")
        changes(result.changes, every=True)
    else:
        out("**no change**: every setting already has the profile's value")
    skips(result.skips, every=True)
    _missing(result.missing_boot, result.in_container)


def changes(items: Iterable[Change], every: bool = False) -> None:
    """Print changes, grouped by knob; long groups are shortened unless `every` is set."""
    groups: dict[str, list[Change]] = {}
    for item in items:
        groups.setdefault(item.knob, []).append(item)
    for name, group in groups.items():
        out(f"  **{name}**: {BY_NAME[name].why}")
        shown = group if every or len(group) <= _FEW + 1 else group[:_FEW]
        columns(
            [
                (f"{_short(c.target)} {c.label}".strip(), f"{_value(c.kind, c.current)} -> {_value(c.kind, c.wanted)}")
                for c in shown
            ],
            "      ",
        )
        if len(group) > len(shown):
            out(f"      and {len(group) - len(shown)} more")


def _short(target: str) -> str:
    return target.removeprefix("file:")


def _value(kind: str, raw: str | None) -> str:
    if raw is None:
        return "absent"
    if kind == value_types.CPUMASK:
        return f"{raw} (CPUs {cpulist.format(cpulist.parse_mask(raw)) or 'none'})"
    return value_types.plain(kind, raw)


def skips(items: Sequence[Skipped], title: str = "left alone", every: bool = False) -> None:
    """Print skipped targets, grouped by reason; long groups are shortened unless `every` is set."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for item in items:
        reasons.setdefault((item.knob, item.reason), []).append(f"{_short(item.target)} {item.label}".strip())
    if not reasons:
        return
    out()
    out(f"**{title}** ({len(items)}):")
    for (name, reason), targets in reasons.items():
        shown = targets if every else targets[:_FEW]
        more = f" and {len(targets) - len(shown)} more" if len(targets) > len(shown) else ""
        out(f"  {name}: {', '.join(shown)}{more}: {reason}")


def _missing(parameters: Sequence[str], in_container: bool) -> None:
    """Print the kernel parameters of the profile that are missing."""
    if parameters:
        out()
        where = f" {ON_THE_HOST}," if in_container else ""
        out(f"some noise can be reduced only by kernel parameters; `quiet boot apply`{where} would add:")
        out(f"  {' '.join(parameters)}")


def receipt(done: Receipt) -> None:
    """Print the changes of an apply."""
    knobs = len({change.knob for change in done.changes})
    if done.changes:
        out(f"applied **{done.profile}**: {counted(len(done.changes), 'change')} by {counted(knobs, 'knob')}")
    else:
        out(f"**{done.profile}** was already applied: no change")
    cpus(done.cpus)
    skips(done.skips, every=True)
    skips(done.failures, "could not be applied", every=True)
    _missing(done.missing_boot, done.in_container)
    out()
    out("`quiet restore` restores every setting")


def apply_command(source: str, requested: str | None = None) -> str:
    """The command that applies a profile (`Profile.source`) to the requested CPUs."""
    import shlex  # rarely needed

    words = ["quiet", "apply", *(["--profile", source] if source != "bench" else [])]
    return shlex.join([*words, *(["--cpus", requested] if requested else [])])


def verify(result: Plan, applied: bool, source: str) -> None:
    """Print whether the settings are in effect. `source`: the profile's name or path (Profile.source)."""
    if not result.changes:
        state = "applied" if applied else "not applied by quiet, but the host already has the profile's settings"
        out(f"**settings in effect**: profile {result.profile} ({state}), {len(result.skips)} left alone")
        cpus(result.cpus)
        return
    number = counted(len(result.changes), "setting")
    if applied:
        out(f"**{number} drifted** from profile {result.profile}; `{apply_command(source)}` sets them again:")
    else:
        out(f"**not quiet**: profile {result.profile} is not applied; {number} to change:")
    changes(result.changes)


def waiting(passed: float, seconds: float) -> None:
    """Show the remaining time of a measurement on a terminal."""
    if sys.stderr.isatty():
        left = seconds - passed
        sys.stderr.write(f"\rmeasuring, {left:.0f} s left " if left > 0.5 else "\r" + " " * 40 + "\r")
        sys.stderr.flush()


def restored(outcome: Outcome) -> None:
    """Print the result of a restore."""
    if outcome.profile is None:
        out("nothing is applied: **nothing left changed**")
        return
    out(f"restored {counted(outcome.restored, 'setting')} of profile {outcome.profile}")
    if outcome.gone:
        kinds = "ended tasks, removed devices, or tasks that set their own CPUs"
        out(f"  {counted(len(outcome.gone), 'target')} left alone: {kinds}")
    skips(outcome.conflicts, "changed by another program since the apply, left alone")
    skips(outcome.failures, "could not be restored")
    skips(outcome.damage, "the journal is damaged")
    skips(outcome.accepted, "accepted, not restored")
    if outcome.log_error:
        note(f"the restore could not be logged: {outcome.log_error}")
    copy = f", with a copy in {outcome.copy}" if outcome.copy else ""
    if outcome.complete and outcome.damaged:
        out(f"**accepted**: the damaged journal is removed{copy}")
    elif outcome.complete:
        out("**nothing else left changed**" if outcome.accepted else "**nothing left changed**")
    elif outcome.damage:
        out(f"settings recorded in the damaged lines may still be changed; the journal is kept{copy}")
        out("a reboot resets every setting; `quiet restore --keep` accepts the host as it is and removes the journal")
    else:
        out("`quiet restore --force` writes back the original values; `quiet restore --keep` accepts the new values")


def explain(item: Knob, stops: Sequence[str]) -> None:
    """Print a knob. `stops`: the interruptions that it removes (noise.remedies)."""
    out(f"**{item.name}**: {item.title}")
    rows = [("why", item.why), ("targets", item.targets), ("choices", ", ".join(item.choices))]
    if item.numeric:
        rows[-1] = ("choices", rows[-1][1] + ", or a number")
    if item.lists:
        rows[-1] = ("choices", rows[-1][1] + ', or a list such as "0-1"')
    if item.after:
        rows.append(("after", ", ".join(item.after) + " (must be set before this knob)"))
    if item.moves:
        rows.append(("also changes", f"{item.moves} (recorded and restored)"))
    if item.restore_last:
        rows.append(("restored", "last, because it would disturb other settings"))
    rows += [("stops", text) for text in dict.fromkeys(stops)]
    rows += [("may refuse", reason) for reason in dict.fromkeys(item.refusals.values())]
    if item.risk:
        rows.append(("risk", item.risk))
    rows.append(("writes", item.paths))
    if item.kernels:
        rows.append(("kernels", item.kernels))
    rows.append(("effect seen", effect_seen(item) or "not measured yet"))
    rows.append(("kernel docs", item.doc))
    columns(rows)
