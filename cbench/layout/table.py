"""Print the result of `cbench layout` as text."""

from __future__ import annotations

from rich.markup import escape

from cbench.ab.layouts import ENVIRONMENT
from cbench.console import table_console
from cbench.external.table import duration
from cbench.layout.result import BuildTime, LayoutResult

SHOWN = 3
"""The number of the fastest builds, and of the slowest builds, to print."""


def result(report: LayoutResult) -> None:
    """Print the result."""
    console = table_console(120)
    for at, line in enumerate(lines(report)):
        console.print(escape(line), style="bold" if not at else "", soft_wrap=True)


def lines(report: LayoutResult) -> list[str]:
    """The sentences of the result, the most important first."""
    low, high = report.share_interval
    share = f"{100 * report.share:.0f} % of the variance of single runs ({100 * low:.0f} % to {100 * high:.0f} %)"
    head = (
        f"layout explains {share}: builds differ by {report.range_pct:.2g} % from the fastest to the slowest"
        if report.layout_matters
        else f"no effect of layout shown: layout explains {share}, p = {report.p:.2g}"
    )
    alike = report.distinct < report.builds and report.preset != ENVIRONMENT
    same = f" ({report.distinct} distinct programs)" if alike else ""
    rows = [
        head,
        f"  {report.builds} builds{same}, preset {report.preset}, {report.blocks} blocks in {report.seconds:.3g} s",
        f"  between builds {report.between_pct:.2g} %, between runs {report.within_pct:.2g} % (standard deviations)",
    ]
    if report.layout_matters:
        needed = f"{report.builds_needed:,}" if report.builds_needed else "more than 10,000"
        rows += [
            f"  one build of each version cannot support a claim below {report.one_build_pct:.2g} %, however often it "
            "runs",
            f"  a claim of {report.effect_pct:g} % needs {needed} builds of each version",
        ]
    else:
        most = report.between_high_pct
        rows.append(
            f"  builds may still differ by a standard deviation of up to {most:.2g} %; a longer --budget lowers this "
            "limit"
        )
    lines = [_build(each) for each in report.times]
    if (more := len(lines) - 2 * SHOWN) > 0:
        lines[SHOWN:-SHOWN] = [f"  ... {more} more builds between these"]
    return [*rows, *lines]


def _build(each: BuildTime) -> str:
    where = "fastest" if not each.slower_pct else f"+{each.slower_pct:.2g} %"
    return f"  {duration(each.median_ns):>10}  {where:>8}  {each.layout}"
