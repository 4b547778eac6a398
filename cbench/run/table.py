"""Print tables of results, workloads and counters."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cbench.console import table_console
from cbench.measure.cause_counts import CauseCount
from cbench.measure.result import CountedEvent, RunResult, WorkloadResult
from cbench.model import TRACING, CausesSource, Counter
from cbench.run.catalogue import Catalogue, ListedCounter, ListedWorkload
from cbench.run.lines import headline_text, workload_lines

MOST_CAUSES = 8
SHOWN = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200)
"""The discarded trials to show, by their numbers from 1; the last one is always shown."""


def label(result: WorkloadResult) -> str:
    return f"CPU {result.cpu} ({'isolated' if result.isolated else 'housekeeping'})"


def results(report: RunResult) -> None:
    """Print a few lines for each workload and CPU."""
    console = table_console(100)
    counter = report.counter
    passed_over = [text for text in counter.why.split("; ") if "unavailable" in text]
    console.print(escape("; ".join([f"counter {counter.name}", *passed_over])), soft_wrap=True)
    for line in dict.fromkeys(f"causes from {_source(r.causes_from)}" for r in report.results):
        console.print(escape(line), soft_wrap=True)
    for result in report.results:
        console.print()
        first, *rest = workload_lines(result)
        console.print(escape(first), style="bold", soft_wrap=True)
        for line in rest:
            console.print(escape(line), soft_wrap=True)


def tables(report: RunResult) -> None:
    """Print one table per workload, with its CPUs side by side, and a verdict for each CPU."""
    console = table_console(max(100, 40 + 30 * len({r.cpu for r in report.results})))
    counter = report.counter
    steps = "" if counter.quantum is None else f", steps of {counter.quantum}"
    console.print(
        escape(
            f"{_named(counter)}{steps}, an empty region takes {counter.overhead} "
            f"(median {counter.overhead_median}){_subtracted(report.results)} "
            f"({'; '.join(filter(None, (counter.method, counter.why)))})"
        ),
        soft_wrap=True,
    )
    for line in dict.fromkeys(f"causes from {_source(r.causes_from)}" for r in report.results):
        console.print(escape(line), soft_wrap=True)
    groups: dict[str, list[WorkloadResult]] = {}
    for result in report.results:
        groups.setdefault(result.workload, []).append(result)
    for name, group in groups.items():
        console.print()
        settings = " ".join(f"{key}={value:,}" for key, value in group[0].params.items())
        console.print(escape(f"{name} ({settings})"), style="bold", soft_wrap=True)
        console.print(_table(group))
        for result in group:
            first, *rest = result.verdict.splitlines()
            console.print(
                escape(f"{label(result)}: {headline_text(result.headline, result.calibration)}"), soft_wrap=True
            )
            console.print(escape(f"{label(result)}: {first}"), soft_wrap=True)
            for line in rest:
                console.print(escape(f"  {line}"), soft_wrap=True)
        _process_rows(console, group)
        _settling(console, group)


def _named(counter: Counter) -> str:
    unit = counter.unit
    return unit if counter.name in unit.split() else f"{counter.name} in {unit}"


def _subtracted(results: Sequence[WorkloadResult]) -> str:
    return ", which is subtracted from every value" if any(r.overhead_subtracted for r in results) else ""


def _source(causes: CausesSource) -> str:
    counted = causes.from_counters
    partly = f"; causes of {counted:,} trials from the counters" if counted and causes.source == TRACING else ""
    return f"{causes.source} ({causes.note}{partly})"


def cause_rows(group: Sequence[Sequence[CauseCount]]) -> list[tuple[str, list[int]]]:
    """The most common causes in a workload's results, each with the number of affected trials in every result; then a
    row for the others.
    """
    counts = [{row.cause: row.trials for row in causes} for causes in group]
    totals: dict[str, int] = {}
    for each in counts:
        for cause, trials in each.items():
            totals[cause] = totals.get(cause, 0) + trials
    names = sorted(totals, key=lambda name: (-totals[name], name))
    shown = [(name, [each.get(name, 0) for each in counts]) for name in names[:MOST_CAUSES]]
    if rest := names[MOST_CAUSES:]:
        shown.append((f"and {len(rest):,} more", [sum(each.get(name, 0) for name in rest) for each in counts]))
    return shown


def _table(group: Sequence[WorkloadResult]) -> Table:
    table = Table()
    table.add_column(escape(group[0].counter.unit))
    for result in group:
        table.add_column(escape(label(result)), justify="right")

    def row(what: str, cells: Sequence[str]) -> None:
        table.add_row(what, *cells)

    row("trials", [f"{len(r.trials):,}" for r in group])
    row("warm-up", [f"{r.warmup:,}{', not settled' if r.settled is False else ''}" for r in group])
    row("first trials", [_several(r.first) for r in group])
    row("last trials", [_several(r.last) for r in group])
    row("mode", [f"{r.mode:,} ({r.mode_count:,} {'time' if r.mode_count == 1 else 'times'})" for r in group])
    row("90th percentile", [_difference(r.p90, r.mode) for r in group])
    row("99th percentile", [_difference(r.p99, r.mode) for r in group])
    row("100th percentile", [_difference(r.max, r.mode) for r in group])
    row("floor", ["no value repeats" if r.floor is None else f"{r.floor:,}" for r in group])
    row("on the floor", [_on_floor(r) for r in group])
    row("range", [f"{r.range:,}" for r in group])
    row("clean trials", [_clean(r) for r in group])
    for name in _counted(group):
        row(escape(f"  {name}"), [_count(r.counts.get(name)) for r in group])
    row("polluted trials", [f"{len(r.polluted):,}" for r in group])
    if any(r.causes_from.source == TRACING for r in group):
        for cause, numbers in cause_rows([r.causes for r in group]):
            row(escape(f"  {cause}"), [f"{number:,}" for number in numbers])
    else:
        row("  context switch", [f"{r.with_context_switch:,}" for r in group])
        row("  interrupt", [f"{r.with_interrupt:,}" for r in group])
        row("  page fault", [f"{r.with_page_fault:,}" for r in group])
        row("  migration", [f"{r.with_migration:,}" for r in group])
    if any(r.stolen_ms for r in group):
        row("stolen by the host", ["unknown" if r.stolen_ms is None else f"{r.stolen_ms:,} ms" for r in group])
    return table


def _counted(group: Sequence[WorkloadResult]) -> list[str]:
    """The names of the events that were additionally counted in any of these results."""
    return list(dict.fromkeys(name for result in group for name in result.counts))


def _clean(result: WorkloadResult) -> str:
    clean = result.clean_trials
    width = "" if clean.range is None else f", range {clean.range:,}"
    return f"{clean.count:,} ({100 * clean.share:.1f} %){width}"


def _several(values: Sequence[int]) -> str:
    return "\n".join(f"{value:,}" for value in values)


def _difference(value: int, mode: int) -> str:
    percent = f" ({100 * value / mode:+,.2f} %)" if mode else ""
    return f"mode {value:+,}{percent}"


def _on_floor(result: WorkloadResult) -> str:
    near = f", {result.near_floor:,} within a step" if result.near_floor > result.at_floor else ""
    return f"{result.at_floor:,}{near}"


def _count(row: CountedEvent | None) -> str:
    """Minimum, median and maximum of an additional count as text, "-" if it is missing."""
    if row is None:
        return "-"
    least, middle, most = row.min, row.median, row.max
    return f"{least:,}" if least == most else f"{least:,} .. {middle:,.0f} .. {most:,}"


def _settling(console: Console, group: Sequence[WorkloadResult]) -> None:
    """Print the values of the discarded trials, and whether they settled (figure 3-13 of the thesis that
    cbench/workloads/thesis.py cites).
    """
    for result in group:
        values, missed = result.settling.values, result.settling.mispredictions
        if not values:
            continue
        shown = [n for n in SHOWN if n < len(values)] + [len(values)]
        done = {True: "settled", False: "NOT settled", None: "too few to have settled"}[result.settled]
        line = "  ".join(f"{n}: {values[n - 1]:,}{_missed(missed, n)}" for n in shown)
        console.print(escape(f"CPU {result.cpu}: {done}, {len(values):,} discarded trials; {line}"), soft_wrap=True)


def _missed(missed: Sequence[int], number: int) -> str:
    return f" ({missed[number - 1]:,} mispredicted)" if len(missed) >= number else ""


def _process_rows(console: Console, group: Sequence[WorkloadResult]) -> None:
    """If there are several processes, print a row for each, and the spread within and between processes."""
    for result in group:
        processes = result.processes
        rows = processes.each
        if len(rows) < 2:
            continue
        names = [name for name in rows[0].levels if len({row.levels[name] for row in rows}) > 1]
        table = Table("process", *(escape(name) for name in names))
        for name in ("floor", "median", "clean", "clean range"):
            table.add_column(name, no_wrap=True)
        for row in rows:
            lowest = "no value repeats" if row.floor is None else f"{row.floor:,}"
            width = "-" if row.clean_range is None else f"{row.clean_range:,}"
            levels = [f"{row.levels[name]:,}" for name in names]
            table.add_row(str(row.process), *levels, lowest, f"{row.median:,.0f}", f"{row.clean:,}", width)
        console.print(table)
        unit = result.counter.unit
        if processes.floor_range is None:
            line = "not every process has a value that repeats; "
            line += f"range of the lowest values: {processes.lowest_range:,} {unit}"
        else:
            line = f"floors of {len(rows)} processes: range {processes.floor_range:,} {unit}"
            line += f" ({processes.floor_range_pct:.4f} %)"
        if spread := processes.spread:
            line += (
                f"; clean trials: standard deviation {spread.within:,.1f} within a process, "
                f"{spread.between:,.1f} between processes ({100 * spread.share_between:.0f} % of the variance)"
            )
        console.print(escape(f"CPU {result.cpu}: {line}"), soft_wrap=True)
        for name, by_level in processes.by_level.items():
            if by_level:
                each = ", ".join(f"{name}={level}: {value:,.0f}" for level, value in by_level.items())
                console.print(escape(f"  median of the lowest values by {name}: {each}"), soft_wrap=True)


def catalogue(content: Catalogue) -> None:
    """Print the lines of `cbench list`: one for each workload and counter."""
    console = table_console(100)
    names = [*(each.name for each in content.workloads), *(each.name for each in content.counters)]
    width = max(map(len, names))

    def line(name: str, text: str) -> None:
        console.print(escape(f"  {name:{width}}  {text}".rstrip()), soft_wrap=True)

    console.print("Workloads", style="bold")
    for workload in content.workloads:
        line(workload.name, (workload.stresses or "your own function").partition(":")[0].partition(" (")[0])
    console.print("Counters", style="bold")
    for counter in content.counters:
        line(counter.name, counter.unit if counter.available else "not available here")
    console.print("`cbench explain NAME` shows parameters, expected costs, and reasons", soft_wrap=True)


def explained(item: ListedWorkload | ListedCounter) -> None:
    """Print all facts about a workload or a counter."""
    console = table_console(100)
    console.print(escape(item.name), style="bold", soft_wrap=True)
    if isinstance(item, ListedCounter):
        rows = [
            ("unit", item.unit),
            ("available", "yes" if item.available else "no"),
            ("method", item.method),
            ("reason", item.why),
        ]
    else:
        rows = [("stresses", item.stresses), ("expected cost", item.cost)]
        rows += [
            (name, f"{each.meaning} (default {each.default:,}, with --quick {each.quick:,})")
            for name, each in item.params.items()
        ]
    for name, text in rows:
        if text:
            console.print(escape(f"  {name:13}  {text}"), soft_wrap=True)
