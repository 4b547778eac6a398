"""Build the tables of a screening experiment's report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cbench.report.page import Cell, Table
from cbench.report.text import chance, marked, number, some
from cbench.screen.analysis.host_results import Ends, ResponseHosts
from cbench.screen.analysis.result import AdjustedSize, EffectResult, ResponseResult, SampleResult, ScreenResult
from cbench.screen.analysis.verdict import amount
from cbench.screen.stats.batch_effects import BootCheck
from cbench.screen.stats.blockplot import BlockPlot
from cbench.screen.stats.practical_significance import Materiality
from cbench.screen.stats.splitplot import SplitPlot

MOST_ROWS = 300
Row = list[str | Cell]

EffectRow = tuple[str, ResponseResult, str, EffectResult]
"""A response's name, the response, an effect's name, the effect."""


def every_effect(result: ScreenResult) -> list[EffectRow]:
    """The effects of every response, the largest in percent first, untested effects last."""

    def place(item: EffectRow) -> tuple[bool, float]:
        each = item[3]
        return each.p_adjusted is None, -abs(each.percent or 0.0)

    return sorted(result.every_effect, key=place)


def effects(rows: Sequence[EffectRow]) -> list[Table]:
    """A table of the largest effects and, if there are too many for one table, a table of the others."""
    head: Row = ["effect", "response", Cell("size", "interval"), "%", Cell("p", "adjusted"), "same order in boxes"]
    cells = [_effect(*each) for each in rows]
    marked = [each.significant for _, _, _, each in rows]
    tables = [Table(head, cells[:MOST_ROWS], marked[:MOST_ROWS], names=2)]
    return tables + ([Table(head, cells[MOST_ROWS:], names=2)] if len(cells) > MOST_ROWS else [])


def not_tested(rows: Sequence[EffectRow]) -> list[str]:
    """Each reason why effects were not tested, with the effects to which it applies."""
    why: dict[str, dict[str, None]] = {}
    for name, _, effect, each in rows:
        if each.p is None:
            reason = each.why or "the reason is unknown"
            why.setdefault(reason, {})[effect if effect in reason else f"{effect} ({name})"] = None
    return [f"Not tested: {some(list(effects))}: {reason}." for reason, effects in why.items()]


def _effect(name: str, row: ResponseResult, effect: str, each: EffectResult) -> Row:
    plot = row.blocks.get(effect)
    return [
        effect,
        name,
        _size(each, row.unit, each.interval),
        "-" if each.percent is None else f"{each.percent:+.3g}" if each.signed else f"{each.percent:.3g}",
        Cell("not tested") if each.p is None else Cell(marked(each.p, each.significant), chance(each.p_adjusted)),
        _boxes(plot) if plot and plot.n else "-",
    ]


def _size(each: EffectResult | AdjustedSize, unit: str, ends: Ends | None = None) -> Cell:
    if each.effect is None:
        return Cell("-")
    adjusted = " adj." if each.is_adjusted else ""
    said = f"{ends[0]:.3g} to {ends[1]:.3g}" if ends else ""
    return Cell(amount(each.fair, unit, each.signed) + adjusted, said)


def _boxes(plot: BlockPlot) -> Cell:
    said = "" if plot.p is None else f"p {chance(plot.p)}"
    said = f"chance {plot.chance:.2g}" if plot.consistent else said
    if not plot.able:
        said += f"; needs {plot.needed}"
    return Cell(f"{plot.agreeing} of {plot.n}", said.removeprefix("; "))


def treatments(row: ResponseResult, confidence: float) -> Table:
    """A table of the treatments with their means and intervals; at most MOST_ROWS rows."""
    level = f"{100 * confidence:.4g} %"
    head: Row = [
        "treatment",
        "n",
        Cell("mean", "median"),
        Cell(f"BCa {level}", "strict ties"),
        f"t {level}",
        Cell("sd", "range"),
        "replicates",
    ]
    shown = row.treatments[:MOST_ROWS]
    return Table(head, [_treatment(row, each) for each in shown], [each.questionable is not None for each in shown])


def _treatment(row: ResponseResult, each: SampleResult) -> Row:
    doubt = each.questionable
    said = "" if doubt is None else f"questionable{': ' + doubt if doubt else ''}"
    warm = "its first value stands out" if each.first_run and each.first_run.flagged else ""
    spread = "" if each.min is None or each.max is None else f"{each.max - each.min:.3g}"
    return [
        Cell(each.name, said, warm),
        Cell(f"{each.n:,}", f"{each.failed:,} failed" if each.failed else ""),
        Cell(f"{number(each.mean, '{:,.7g}')} {row.unit}", number(each.median, "{:,.7g}")),
        Cell(_interval(each.bca_mid), _interval(each.bca_strict), each.why or ""),
        _interval(each.t),
        Cell(number(each.sd, "{:.3g}"), spread),
        f"{each.replicates:,}",
    ]


def _interval(ends: Ends | None) -> str:
    return "-" if ends is None else f"[{ends[0]:,.7g}, {ends[1]:,.7g}]"


def material(row: ResponseResult) -> tuple[str, Table | None]:
    """A sentence, and a table that compares effects with the widths of intervals by sample size; or the reason why
    there is no table, and None.
    """
    facts, unit = row.material, row.unit
    if not isinstance(facts, Materiality) or facts.median_effect is None or facts.largest_effect is None:
        return (facts.why if facts else None) or "Nothing to compare.", None
    if facts.largest_effect == 0:
        return "There is no effect.", None
    widths: dict[int, dict[str, float]] = {}
    for each in facts.widths:
        widths.setdefault(each.n, {})[each.method] = each.median_width
    methods = sorted({method for by_method in widths.values() for method in by_method})
    rows = []
    for n, by_method in sorted(widths.items()):
        narrow = min(by_method.values())
        shown = [name for name, each in facts.effects.items() if narrow < each.magnitude]
        cells = [amount(by_method[m], unit) if m in by_method else "-" for m in methods]
        rows.append([f"{n:,}", *cells, ", ".join(shown) or "none"])
    enough = [f"{m} {n:,}" if n else f"{m} larger than all sizes studied" for m, n in facts.enough.items()]
    said = (
        f"Median main effect {amount(facts.median_effect, unit)}, largest {amount(facts.largest_effect, unit)}; range "
        f"of a treatment's values {amount(facts.range or 0.0, unit)}. Smallest sample whose median interval is "
        f"narrower than the median effect: {', '.join(enough)}."
    )
    head = ["n", *(f"median width, {method}" for method in methods), "main effects above the width"]
    return said, Table(head, rows)


def split_plot(anova: SplitPlot) -> Table:
    """The table of the analysis of variance."""
    cells = [
        [
            each.source,
            each.stratum or "",
            f"{each.ss:.6g}",
            f"{each.df:,}",
            number(each.ms, "{:.6g}"),
            number(each.f, "{:.4g}"),
            chance(each.p),
        ]
        for each in anova.rows
    ]
    return Table(["source", "stratum", "SS", "df", "MS", "F", "p"], cells, names=2)


def boots(rows: Sequence[BootCheck]) -> Table:
    """A table of the tests for differences between batches with the same levels of the hard factors."""
    cells = [
        [
            each.level or "all",
            f"{len(each.batches):,}",
            f"{each.h:.4g}",
            marked(each.p_holm, each.depends),
            number(each.f, "{:.4g}"),
            number(each.icc, "{:.3f}"),
            f"{each.var_boot:.4g}",
        ]
        for each in rows
    ]
    return Table(["level", "batches", "H", "p after Holm", "F", "share of variance", "variance between"], cells)


def hosts(found: ResponseHosts, unit: str) -> tuple[Table, Table]:
    """Two tables: the median of each host, with its difference from the others; and the effects on each host, with the
    test for differences between hosts.
    """
    levels: list[Row] = [
        [each.host, number(each.median, "{:,.6g}"), number(each.level_pct, "{:+.3g} %"), chance(each.p_level)]
        for each in found.levels
    ]
    rows: list[Row] = []
    for each in found.effects:
        name = Cell(
            f"{each.factor}: {each.levels[1]} - {each.levels[0]}",
            f"difference: p {marked(each.p_holm, each.significant)}",
        )
        rows += [
            [
                name,
                one.host,
                f"{one.n:,}",
                Cell("-" if one.effect is None else amount(one.effect, unit, True), _interval(one.interval)),
                number(one.percent, "{:+.3g}"),
                chance(one.p_effect),
            ]
            for one in each.hosts
        ]
    head: Row = ["effect", "host", "n", Cell("size", "interval"), "%", "p effect"]
    return (
        Table(["host", "own median", "above the others", "p level"], levels),
        Table(head, rows[:MOST_ROWS], names=2),
    )


def sets(result: ScreenResult) -> Table:
    """A table of the choices of treatments: their numbers of treatments, their balance, and remarks."""
    rows: list[Row] = [
        [
            Cell(each.name, each.words),
            f"{each.treatments:,}",
            "; ".join(f"{factor} {_counts(counts)}" for factor, counts in each.counts.items()),
            {True: "yes", False: "no", None: "-"}[each.balanced],
            "; ".join(each.says) or "-",
        ]
        for each in result.design.sets
    ]
    marked = [each.name == result.filter.name for each in result.design.sets]
    return Table(["treatments", "number", "of each level", "balanced", "remarks"], rows, marked, names=5)


def _counts(counts: Mapping[str, int]) -> str:
    return "+".join(str(count) for count in counts.values())


def effects_by_set(result: ScreenResult) -> Table:
    """A table of the main effects as estimated from each choice of treatments; at most MOST_ROWS rows."""
    names = [each.name for each in result.design.sets]
    rows: list[Row] = []
    for response, row in result.responses.items():
        for factor in row.effects:
            sizes = [row.sets.get(name, {}).get(factor) for name in names]
            rows.append([factor, response, *(_set_effect(each, row.unit) for each in sizes)])
    return Table(["main effect", "response", *names], rows[:MOST_ROWS], names=2)


def _set_effect(each: AdjustedSize | None, unit: str) -> Cell:
    if each is None or each.effect is None:
        return Cell("-")
    size = _size(each, unit)
    return size if each.testable else size._replace(small="aliased with other effects")
