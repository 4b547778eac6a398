"""Print a screening of knobs as text: the knobs that matter, conflicts, and the smallest profile."""

from __future__ import annotations

from rich import box
from rich.markup import escape
from rich.table import Table

from cbench.console import table_console
from cbench.knobs.options import RESPONSES
from cbench.knobs.result import (
    ALIKE,
    NOISIER,
    QUIETER,
    WITHIN,
    KnobDesign,
    KnobEffect,
    KnobsResult,
)
from cbench.report.text import chance, counted, some


def result(found: KnobsResult) -> None:
    """Print the result of a screening."""
    console = table_console(120)
    for at, line in enumerate(lines(found)):
        console.print(escape(line), style="" if at else "bold", soft_wrap=True)
    if found.effects:
        table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for at, name in enumerate(head(found)):
            table.add_column(name, justify="right" if 1 < at < 5 else "left")
        for each in found.effects:
            table.add_row(*(escape(cell) for cell in row(each)))
        console.print(table)
    for line in below(found):
        console.print(escape(line), soft_wrap=True)


def head(found: KnobsResult) -> tuple[str, ...]:
    """The column headings of the ranking."""
    return ("knob", "verdict", f"change without it, {found.unit}", "95 % interval", "adjusted p", "")


def row(each: KnobEffect) -> tuple[str, ...]:
    """The cells of a knob's row in the ranking."""
    interval = "-" if each.interval is None else f"{each.interval[0]:+.3g} to {each.interval[1]:+.3g}"
    return (
        each.knob,
        each.verdict,
        "-" if each.effect is None else f"{each.effect:+.3g}",
        interval,
        chance(each.p_adjusted),
        each.why,
    )


def lines(found: KnobsResult) -> list[str]:
    """The result as lines of text, the answer first."""
    of = f"of {counted(found.screened, 'knob')} of profile {found.profile}"
    matter = found.matter
    if found.full is None or found.none is None:
        return [
            f"no conclusion after {counted(found.applications, 'application')}: at least 2 are needed; raise --budget"
        ]
    said = f"{len(matter)} {of} matter for the {found.title}: {', '.join(matter)}"
    if not matter:
        said = f"none {of} changes the {found.title} by {_amount(found.smallest, found)} or more"
        if found.undecided:
            said = f"none {of} is shown to matter for the {found.title}"
    return [
        said,
        f"CPUs {found.cpus}: {_amount(found.full, found)} with the profile, {_amount(found.none, found)} without; "
        f"{counted(found.applications, 'application')} in {found.seconds:,.0f} s",
        verified(found),
    ]


def verified(found: KnobsResult) -> str:
    """A sentence that compares the smallest profile with the full one."""
    check, size = found.check, counted(len(found.written), "knob")
    if check.interval is None:
        same = check.outcome == WITHIN
        return f"smallest profile: {size}" + (", the full one" if same else "; not compared with the full one")
    low, high = check.interval_pct or (None, None)
    shown = f"{check.interval[0]:+.3g} to {check.interval[1]:+.3g} {found.unit}"
    shown += f" ({low:+.3g} to {high:+.3g} %)" if low is not None and high is not None else ""
    words = {
        WITHIN: f"as quiet as the full one within {found.within:.0%}",
        ALIKE: f"no difference from the full one shown, but equality within {found.within:.0%} is not shown either",
        NOISIER: "NOISIER than the full one",
        QUIETER: "quieter than the full one",
    }[check.outcome]
    return f"smallest profile: {size}, {words}: {shown}, {counted(check.pairs, 'pair')} of applications"


def below(found: KnobsResult) -> list[str]:
    """The notes below the ranking: knobs that do not matter or are undecided, conflicts, and knobs that were not
    applied or not screened.
    """
    said = []
    if found.inert:
        least = (
            ""
            if found.smallest is None
            else f" (a joint effect of {_amount(found.smallest, found)} would have been detected)"
        )
        said.append(f"do not matter{least}: {some(found.inert)}")
    if found.undecided:
        more = "a screening with more --applications can decide"
        said.append(f"undecided, and kept in the profile: {some(found.undecided)}; {more}")
    said += [f"conflict: {each.text}" for each in found.conflicts]
    said += [f"not applied: {knob}: {why}" for knob, why in found.refused.items()]
    if found.effects:
        named = f"a chance of at most {found.alpha:.3g} that any reported knob has no effect"
        said.append(f"p is corrected for all {found.screened:,} knobs: {named}")
    if found.boot_left_out:
        said.append(f"not screened, because each needs a reboot: {' '.join(found.boot_left_out)}")
    return said


def _amount(value: float | None, found: KnobsResult) -> str:
    return "-" if value is None else f"{value:.3g} {found.unit}"


def design(plan: KnobDesign) -> None:
    """Print the plan of a screening."""
    console = table_console(120)
    for line in design_lines(plan):
        console.print(escape(line), soft_wrap=True)


def design_lines(plan: KnobDesign) -> list[str]:
    """The sentences of `--plan`."""
    of = RESPONSES[plan.response]
    said = [
        f"{counted(len(plan.knobs), 'knob')} of profile {plan.profile} would change this host (CPUs {plan.cpus})"
        f": {', '.join(plan.knobs)}",
        f"response: {plan.response}" + ("" if of.command else f", {plan.duration_s:g} s in each application"),
        "design: measure the full profile 3 to 5 times and no knob once; leave out groups of knobs, and halve each "
        "group without which the host is noisier; compare the smallest profile with the full one, in random order",
    ]
    for each in plan.expected:
        seconds = "" if each.seconds is None else f", {each.seconds / 60:.0f} min of measuring"
        said.append(f"  if {each.matter} of them matter: about {each.applications} applications{seconds}")
    said.append(
        f"at most {plan.most_applications} applications; applying and restoring take additional time, which the "
        f"progress line includes from the second application on (planning alone: {plan.planning_s:.2g} s)"
    )
    if plan.budget_s is not None:
        said.append(f"at most {plan.budget_s:,.0f} s; knobs that are still undecided at that time stay in the profile")
    if plan.fixed:
        said.append(f"applied each time, not screened: {', '.join(plan.fixed)}")
    said.append(f"{counted(plan.idle, 'other knob')} of the profile would change nothing here and are left out")
    if plan.boot_left_out:
        said.append(f"not screened, because each needs a reboot: {' '.join(plan.boot_left_out)}")
    return said
