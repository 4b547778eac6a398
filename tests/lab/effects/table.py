"""The effects as tables for people, and as the data that the product ships."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from quiet.knobs.registry import BY_NAME
from tests.lab.effects.analyze import Effect, Removed, left, seen_from

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
SHOWN = 3


def rate(per_s: float) -> str:
    return f"{per_s:.0f}" if per_s >= 10 else f"{per_s:.2g}"


def words(each: Removed) -> str:
    return f"{each.cause} {rate(each.without_per_s)} → {rate(each.with_per_s)}/s"


def series(effect: Effect) -> str:
    return ".".join(effect.kernel.split(".")[:2])


def largest(causes: Iterable[Removed]) -> list[Removed]:
    """Each cause once, at its largest."""
    seen: dict[str, Removed] = {}
    for each in sorted(causes, key=lambda each: -abs(each.removed_per_s)):
        seen.setdefault(each.cause, each)
    return list(seen.values())[:SHOWN]


def by_knob(effects: Sequence[Effect]) -> dict[str, list[Effect]]:
    rank = {name: number for number, name in enumerate(BY_NAME)}
    ordered = sorted(effects, key=lambda each: rank[each.knob])
    return {knob: list(each) for knob, each in groupby(ordered, key=lambda each: each.knob)}


def entry(seen: Sequence[Effect], least_per_s: float) -> str:
    """The measured effect of a knob on all machines together; one of `least_per_s` would have been detected."""
    kernels = ", ".join(dict.fromkeys(series(each) for each in seen if not each.refused))
    if removed := largest(each for effect in seen for each in effect.removed):
        listed = json.dumps([words(each) for each in removed], ensure_ascii=False)
        return f"{{ kernels = {json.dumps(kernels)}, removed = {listed} }}"
    if not kernels:
        return '{ kernels = "" }'
    return f"{{ kernels = {json.dumps(kernels)}, least_per_s = {json.dumps(rate(least_per_s))} }}"


def toml(effects: Sequence[Effect], least_per_s: float) -> str:
    entries = {knob: entry(seen, least_per_s) for knob, seen in by_knob(effects).items()}
    lines = [
        "# What each knob was seen to do to an isolated CPU. Written by `make effects`; see docs/knob-effects.md.",
        *(f"{json.dumps(knob)} = {text}" for knob, text in entries.items()),
    ]
    return "\n".join(lines) + "\n"


def _cell(causes: Iterable[Removed]) -> str:
    return "<br>".join(words(each) for each in largest(causes)) or "-"


def markdown(effects: Sequence[Effect]) -> str:
    lines = ["| knob | machine | removed | added |", "| --- | --- | --- | --- |"]
    nothing: dict[str, list[str]] = {}
    for knob, seen in by_knob(effects).items():
        for each in seen:
            if each.removed or each.added:
                lines.append(f"| `{knob}` | {each.machine} | {_cell(each.removed)} | {_cell(each.added)} |")
            elif not each.refused:
                nothing.setdefault(each.machine, []).append(f"`{knob}`")
    lines += ["", *(f"No effect seen on {machine}: {', '.join(knobs)}.\n" for machine, knobs in nothing.items())]
    return "\n".join(lines)


def remaining(reports: Mapping[str, Mapping[str, Any]]) -> str:
    lines = ["| machine | events per second with all knobs of the machine |", "| --- | --- |"]
    for machine, report in reports.items():
        causes = "; ".join(f"{cause} {rate(per_s)}" for cause, per_s in left(report)) or "nothing"
        lines.append(f"| {machine} | {causes} |")
    return "\n".join(lines)


def replaced(page: str, reports: Mapping[str, Mapping[str, Any]], effects: Sequence[Effect]) -> str:
    """The page with its measured part rewritten."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    rows = "\n".join(f"| {name} | {each['kernel']} | {seen_from(each):.2g}/s |" for name, each in reports.items())
    parts = (
        f"| machine | Linux | seen from |\n| --- | --- | ---: |\n{rows}",
        "## Effects",
        markdown(effects).rstrip(),
        "## Remaining interruptions",
        remaining(reports),
    )
    return f"{before}{BEGIN}\n" + "\n\n".join(parts) + f"\n{END}{after}"


def text(effects: Sequence[Effect], least_per_s: float) -> str:
    """For the terminal: a line a knob."""
    return "\n".join(f"{knob:24} {entry(seen, least_per_s)}" for knob, seen in by_knob(effects).items())
