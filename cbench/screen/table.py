"""Print the output of `cbench screen analyze`, to a terminal or a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.markup import escape
from rich.table import Table

from cbench.console import table_console
from cbench.report.svg import shortened
from cbench.report.text import chance, marked, number
from cbench.screen.analysis.host_results import ResponseHosts
from cbench.screen.analysis.result import EffectResult, EffectSize, MainEffectResult, ResponseResult, ScreenResult
from cbench.screen.analysis.verdict import corrected_by, tested_by
from cbench.screen.stats.blockplot import BlockPlot

MOST_TREATMENTS = 40
MOST_EFFECTS = 60
LONGEST_NAME = 48


def analysis(result: ScreenResult) -> None:
    """Print the verdict, then for each response its treatments and effects, and the choices of treatments."""
    console = table_console(400)
    for at, line in enumerate(result.verdict):
        console.print(escape(line), style=None if at else "bold", soft_wrap=not console.is_terminal)
        if not at and result.design.columns:
            words = f"columns: {columns_words(result.design.columns)}"
            console.print(escape(words), style="dim", soft_wrap=not console.is_terminal)
    for name, row in result.responses.items():
        unit = f" ({row.unit})" if row.unit else ""
        console.print(f"\n[bold]{escape(name)}{escape(unit)}[/bold]: {row.n:,} values, {row.failed:,} failed")
        console.print(_effects(row))
        if row.hosts:
            console.print(_hosts(row.hosts, result.confidence))
        console.print(_treatments(row, result.confidence))
        if len(row.treatments) > MOST_TREATMENTS:
            console.print(f"{MOST_TREATMENTS} of {len(row.treatments):,} treatments are shown; --json has all of them")
        if len(row.every_effect) > MOST_EFFECTS:
            console.print(f"{MOST_EFFECTS} of {len(row.every_effect):,} effects are shown; --json has all of them")
    if len(result.design.sets) > 1:
        console.print()
        console.print(_sets(result))
    console.print(
        f"● significant: p after {corrected_by(result) or 'correction'} over {result.tests:,} effects is below "
        f"{result.alpha:g}; ○ not significant. p: {tested_by(result)}. %: relative to the mean of all treatments. "
        "adj.: the estimate of the test, which differs from the plain one if treatments or numbers of values are not "
        "balanced, or if iterations lack values.",
        soft_wrap=not console.is_terminal,
    )


def columns_words(columns: Mapping[str, str]) -> str:
    """The roles of a table's columns as text, such as `factor: a, b; response: value`."""
    by_role: dict[str, list[str]] = {}
    for name, role in columns.items():
        by_role.setdefault(role, []).append(name)
    return "; ".join(f"{role}: {', '.join(names)}" for role, names in by_role.items())


def _table(head: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for at, name in enumerate(head):
        table.add_column(name, justify="right" if at else "left", overflow="fold")
    return table


def _effects(row: ResponseResult) -> Table:
    corrected = "p step-down" if row.lenth else "p Holm"
    table = _table(("effect", "size", "interval", "%", "p", corrected, "means of levels", "same order in boxes"))
    for name, each in by_size(row)[:MOST_EFFECTS]:
        plot = row.blocks.get(name)
        levels = each.levels if isinstance(each, MainEffectResult) else ()
        means = ", ".join(f"{level.level}: {number(level.mean, '{:,.6g}')}" for level in levels)
        table.add_row(
            escape(shortened(name, LONGEST_NAME)),
            size(each),
            interval(each.interval),
            number(each.percent, "{:+.3g}" if each.signed else "{:.3g}"),
            chance(each.p),
            marked(each.p_adjusted, each.significant),
            escape(shortened(means, 70)) if means else "",
            boxes(plot),
        )
    return table


def by_size(row: ResponseResult) -> list[tuple[str, EffectResult]]:
    """The effects, the largest magnitude first; effects without an estimate last."""
    return sorted(row.every_effect, key=lambda item: 1.0 if item[1].effect is None else -abs(item[1].fair))


def size(each: EffectSize) -> str:
    """The effect as text, "-" if unknown; if the adjusted effect differs, the adjusted effect, such as `+0.1 adj.`."""
    shown = "{:+.4g}" if each.signed else "{:.4g}"
    if each.effect is None or not each.is_adjusted:
        return number(each.effect, shown)
    return f"{number(each.fair, shown)} adj."


def boxes(plot: BlockPlot | None) -> str:
    """The agreement of a block plot's boxes, such as `6 of 6 (chance 0.031)`; "-" if no box counts."""
    if not plot or not plot.n:
        return "-"
    words = f"chance {plot.chance:.2g}" if plot.consistent else ("p " + chance(plot.p) if plot.p else "no test")
    return f"{plot.agreeing} of {plot.n} ({words})"


def _hosts(found: ResponseHosts, confidence: float) -> Table:
    """A table of the effects on each host; the row "between hosts" has the test for differences between hosts."""
    table = _table(("effect by host", "host", "n", "size", f"{100 * confidence:.4g} %", "%", "p effect"))
    for each in found.effects:
        name = shortened(f"{each.factor}: {each.levels[1]} - {each.levels[0]}", LONGEST_NAME)
        for one in each.hosts:
            if table.row_count >= MOST_EFFECTS:
                return table
            table.add_row(
                escape(name),
                escape(one.host),
                f"{one.n:,}",
                number(one.effect, "{:+.4g}"),
                interval(one.interval),
                number(one.percent, "{:+.3g}"),
                chance(one.p_effect),
            )
        table.add_row(
            escape(name), "between hosts", "", "", "", "", marked(each.p_holm, each.significant), end_section=True
        )
    return table


def _treatments(row: ResponseResult, confidence: float) -> Table:
    level = f"{100 * confidence:.4g} %"
    table = _table(("treatment", "n", "mean", f"BCa {level}", f"t {level}", "sd", "median"))
    for each in row.treatments[:MOST_TREATMENTS]:
        sign = " (questionable)" if each.questionable is not None else ""
        table.add_row(
            escape(shortened(each.name, LONGEST_NAME)) + sign,
            f"{each.n:,}",
            number(each.mean, "{:,.6g}"),
            interval(each.bca_mid),
            interval(each.t),
            number(each.sd, "{:.3g}"),
            number(each.median, "{:,.6g}"),
        )
    return table


def interval(ends: Sequence[float] | None) -> str:
    """An interval as text, such as `[1, 2]`; "-" for None."""
    return "-" if ends is None else f"[{ends[0]:,.6g}, {ends[1]:,.6g}]"


def _sets(result: ScreenResult) -> Table:
    table = _table(("choice of treatments", "treatments", "balanced", "cannot separate"))
    for each in result.design.sets:
        said = [f"{effect.effect} from {', '.join(effect.aliases)}" for effect in each.aliased]
        said += [effect.effect for effect in each.untestable or () if effect.effect not in " ".join(said)]
        balanced = {True: "yes", False: "no", None: "-"}[each.balanced]
        table.add_row(
            escape(each.name), f"{each.treatments:,}", balanced, escape(shortened("; ".join(said), 80)) or "-"
        )
    return table
