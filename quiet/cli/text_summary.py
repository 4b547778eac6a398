"""Print the short text of `quiet plan` and `quiet apply`: gains, side effects, and settings that require a reboot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from quiet import cpulist
from quiet.cli.text import ON_THE_HOST, counted, cpus, out
from quiet.knobs.effects import measured_effect
from quiet.knobs.registry import BY_NAME, KNOBS

if TYPE_CHECKING:
    from quiet.cpulist import CpuSet
    from quiet.settings.apply import Receipt
    from quiet.settings.plan import Change, Plan, Skipped

MOST_LINES = 15
_GAINS, _NOTICED, _FAILURES = 5, 3, 2  # maximum number of lines for each group
_WIDTH = 100


def plan(result: Plan, applied: bool, command: str) -> None:
    """Print a plan in at most MOST_LINES lines. `command`: the command that applies it."""
    name = f"profile **{result.profile}**{' (applied)' if applied else ''}"
    left = f"{len(result.skips)} left alone; `quiet plan --all` lists them"
    if result.changes:
        out(f"{name}: {_number(result.changes)}, {left}")
    else:
        out(f"{name}: **no change**: every setting already has the profile's value, {left}")
    cpus(result.cpus)
    _gained(result.changes, _gains_on(result.cpus.isolated), _GAINS)
    _noticed(result.changes)
    _reboot(result.missing_boot, result.in_container)
    if result.changes:
        out(f"`{command}` makes these changes; `quiet restore` restores every setting")


def receipt(done: Receipt) -> None:
    """Print the result of an apply in at most MOST_LINES lines."""
    left = f"{len(done.skips)} left alone; `quiet apply --all` lists them"
    if done.changes:
        out(f"applied **{done.profile}**: {_number(done.changes)}, {left}")
    else:
        out(f"**{done.profile}** was already applied: no change")
    cpus(done.cpus)
    _failed(done.failures)
    gains = 2 if done.failures else _GAINS
    _gained(done.changes, _gains_on(done.cpus.isolated), gains)
    _noticed(done.changes)
    _reboot(done.missing_boot, done.in_container)
    out("`quiet restore` restores every setting")


def _number(changes: Sequence[Change]) -> str:
    return f"**{counted(len(changes), 'change')}** by {counted(len({each.knob for each in changes}), 'knob')}"


def _gains_on(isolated: CpuSet) -> str:
    return f"Gains on CPU{'' if len(isolated) == 1 else 's'} {cpulist.format(isolated)}:"


def _gained(changes: Iterable[Change], title: str, most: int) -> None:
    """Print the title and at most `most` lines: each gain with its number of changes and first measured effect."""
    number: dict[str, int] = {}
    for each in changes:
        number[each.knob] = number.get(each.knob, 0) + 1
    gains: dict[str, list[str]] = {}
    for knob in KNOBS:
        if knob.name in number:
            gains.setdefault(knob.gain, []).append(knob.name)
    if not gains:
        return
    out(title)
    rows = [
        (gain, counted(sum(number[name] for name in names), "change") + _measured(names))
        for gain, names in gains.items()
    ]
    if len(rows) > most:
        rest = rows[most - 1 :]
        rows[most - 1 :] = [("and " + ", ".join(gain for gain, _ in rest), "")]
    width = max(len(gain) for gain, text in rows if text)
    for gain, text in rows:
        out(f"  {gain:{width}}  {text}".rstrip())


def _measured(names: Iterable[str]) -> str:
    """The first measured effect of these knobs, in the order in which the knobs are applied."""
    for name in names:
        effect = measured_effect(BY_NAME[name])
        if effect and effect.removed:
            return f" (in the lab: {effect.removed[0]})"
    return ""


def _noticed(changes: Iterable[Change]) -> None:
    names = dict.fromkeys(each.knob for each in changes)
    noticed = list(dict.fromkeys(BY_NAME[name].noticed for name in names if BY_NAME[name].noticed))
    if noticed:
        out("Side effects for other users of this machine:")
        for line in _lines(noticed, _NOTICED):
            out(f"  {line}")


def _lines(phrases: Sequence[str], most: int) -> list[str]:
    """Several phrases per line; the last line counts the phrases that do not fit."""
    lines = [""]
    for number, phrase in enumerate(phrases):
        joined = f"{lines[-1]}; {phrase}" if lines[-1] else phrase
        last = len(lines) == most
        if len(joined) <= _WIDTH - (20 if last else 0) or not lines[-1]:
            lines[-1] = joined
        elif last:
            lines[-1] += f"; and {len(phrases) - number} more"
            break
        else:
            lines.append(phrase)
    return lines


def _failed(failures: Sequence[Skipped]) -> None:
    """Print the number of failures, and the first few."""
    if not failures:
        return
    out(f"**could not be applied** ({len(failures)}):")
    for each in failures[:_FAILURES]:
        out(f"  {each.knob}: {each.target.removeprefix('file:')}: {each.reason}")


def _reboot(parameters: Sequence[str], in_container: bool) -> None:
    if parameters:
        where = f" {ON_THE_HOST}" if in_container else ""
        out(f"Parameters that need a reboot (`quiet boot plan`{where}): {' '.join(parameters)}")
