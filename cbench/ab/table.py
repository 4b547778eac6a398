"""Format a comparison as text: the verdicts, the medians, the noise floor and the next step."""

from __future__ import annotations

from rich.markup import escape

from cbench.ab.analyze import FASTER, SLOWER, TOO_FEW, WITHIN_FLOOR
from cbench.ab.layouts import MOST_LAYOUTS
from cbench.ab.result import AbResult, ArmComparison, OrderEffect
from cbench.console import table_console
from cbench.external.result import CommandResult
from cbench.external.table import disturbed_line, duration, naming_line
from cbench.report.text import about

SMALLEST_P = 1e-4
MANY_TIMES = 10
"""If more than this many times the measured blocks are needed, the advice also suggests a quieter host."""


def result(report: AbResult) -> None:
    """Print a comparison: a verdict for each arm but the first, a median for each arm, and up to seven other lines."""
    console = table_console(120)
    for at, line in enumerate(lines(report)):
        style = "bold" if at < len(report.comparisons) else ""
        console.print(escape(line), style=style, soft_wrap=True)


def lines(report: AbResult) -> list[str]:
    """The lines that describe a comparison."""
    found = [_compared(each, report) for each in report.comparisons]
    found += [_arm(each) for at, each in enumerate(report.arms) if at != 1]
    if report.varied:
        same = (
            ""
            if report.distinct_builds >= report.layouts
            else f" (at least {report.distinct_builds} distinct programs)"
        )
        found.append(f"layouts: {report.layouts} builds of each arm{same}; the interval is over layouts")
    found.append(_floor(report))
    found += _order(report)
    found.append(disturbed_line(report.polluted, report.blocks * len(report.arms), report.causes))
    if report.polluted:
        found.append(naming_line(report.arms[0].command))
    found += _next(report)
    return found


def _compared(each: ArmComparison, report: AbResult) -> str:
    blocks = f"{report.blocks:,} {'block' if report.blocks == 1 else 'blocks'}"
    blocks += f" of {report.layouts} layouts" if report.varied else ""
    blocks += f" in {report.seconds:,.3g} s"
    if each.outcome == TOO_FEW or each.interval is None:
        return f"{each.arm}: too few blocks to compare it with {each.baseline} ({blocks})"
    low, high = each.interval
    if each.outcome in (FASTER, SLOWER):
        ends = sorted(abs(1 - end) for end in each.interval)
        shown = f"{percent(abs(1 - each.ratio))} {each.outcome} than {each.baseline}"
        return f"{each.arm} is {shown} ({percent(ends[0])} to {percent(ends[1])}), {blocks}"
    beyond = " beyond the noise floor" if each.outcome == WITHIN_FLOOR else ""
    return f"{each.arm}: no difference from {each.baseline} shown{beyond} ({_signed(low)} to {_signed(high)}), {blocks}"


def _arm(each: CommandResult) -> str:
    head = each.headline
    interval = "" if head.interval is None else f" ({duration(head.interval[0])} to {duration(head.interval[1])})"
    failed = sum(count for code, count in each.exit_codes.items() if code != "0")
    failures = f", failed {failed:,} times" if failed else ""
    return f"  {each.workload}: median {duration(head.value)}{interval}{failures}"


def _floor(report: AbResult) -> str:
    floor = report.floor
    if floor.interval is None:
        return "noise floor: too few blocks to estimate it"
    if floor.raised_by_predecessor:
        return f"noise floor: {percent(floor.bound)}, the effect of the predecessor on a run"
    same = "a copy under another path" if floor.copied else f"run once more, because {floor.why}"
    return f"noise floor: {report.baseline} differs from itself ({same}) by at most {percent(floor.bound)} here"


def _order(report: AbResult) -> list[str]:
    found = []
    position, predecessor = report.position, report.predecessor
    if position is None or predecessor is None:
        return ["order: too few blocks to test its effect"]
    if position.matters:
        found.append(
            f"order: runs at position {position.at} of {len(report.arms)} are {_effect(position)}; each arm takes each "
            "position equally often"
        )
    if predecessor.matters:
        found.append(f"order: runs right after {predecessor.at} are {_effect(predecessor)}; try --prepare 'sleep 0.1'")
    return found or ["order: no effect of position or predecessor shown"]


def _effect(effect: OrderEffect) -> str:
    p = f"p = {effect.p:.2g}" if effect.p >= SMALLEST_P else f"p < {SMALLEST_P:.4f}"
    return f"{percent(abs(1 - effect.ratio))} {'slower' if effect.ratio >= 1 else 'faster'} ({p})"


def _next(report: AbResult) -> list[str]:
    """Advice on how to detect the requested effect if the blocks did not suffice."""
    if report.differs:
        return []
    if report.floor.interval is None or report.detectable is None:
        return ["allow more time with --budget S, or more blocks with --blocks N"]
    wanted, quieter = f"{100 * report.effect:g} %", "a quieter host lowers the floor: --profile bench"
    if report.blocks_needed:
        blocks, seconds = about(report.blocks_needed), about(report.budget_needed_s or 0)
        line = f"detecting {wanted} takes about {blocks:,} blocks: --budget {seconds}"
        return [f"{line}, or a quieter host: --profile bench" if blocks > MANY_TIMES * report.blocks else line]
    if report.layouts_needed:
        if report.layouts_needed > MOST_LAYOUTS:
            return [f"detecting {wanted} takes more than {MOST_LAYOUTS} layouts, the most that can be built"]
        layouts, seconds = about(report.layouts_needed), about(report.budget_needed_s or 0)
        return [f"detecting {wanted} takes about {layouts} layouts: --layouts {layouts} --budget {seconds}"]
    if report.floor.bound >= report.effect:
        return [f"{wanted} is below the noise floor; {quieter}"]
    return []


def percent(share: float) -> str:
    """A share as text: "0.35 %", "2.1 %", "1,250 %"."""
    value = 100 * share
    digits = 2 if value < 0.995 else 1 if value < 99.95 else 0
    return f"{value:,.{digits}f} %"


def _signed(ratio: float) -> str:
    return f"{percent(abs(1 - ratio))} {'faster' if ratio < 1 else 'slower'}"
