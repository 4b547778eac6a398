"""Tables for people. Everything shown comes from report.py's plain objects."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table

from cbench.measure.causes import TRACING
from cbench.run import table_more

Row = Mapping[str, Any]
MOST_CAUSES = 8
COUNTED = (
    ("with_context_switch", "  context switch"),
    ("with_interrupt", "  interrupt"),
    ("with_page_fault", "  page fault"),
    ("with_migration", "  migration"),
)


class TrialBar:
    """A progress bar on a terminal, else nothing. Drawn only when told to: no thread disturbs the trials."""

    def __init__(self) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        console = Console(file=sys.stderr)
        self._progress = Progress(
            *columns, console=console, auto_refresh=False, transient=True, disable=not sys.stderr.isatty()
        )
        self._task = self._progress.add_task("", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, text: str, done: int, total: int) -> None:
        self._progress.update(self._task, description=escape(text), completed=done, total=total)
        self._progress.refresh()


def label(result: Row) -> str:
    return f"CPU {result['cpu']} ({'isolated' if result['isolated'] else 'housekeeping'})"


def results(report: Row) -> None:
    """One table a workload, its CPUs side by side, and a verdict for each."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, 100, 40 + 30 * len({r["cpu"] for r in report["results"]}))
    counter = report["counter"]
    steps = "" if counter["quantum"] is None else f", steps of {counter['quantum']}"
    console.print(
        escape(
            f"{_named(counter)}{steps}, an empty region takes {counter['overhead']} "
            f"(median {counter['overhead_median']}){_subtracted(report['results'])} "
            f"({'; '.join(filter(None, (counter['method'], counter['why'])))})"
        ),
        soft_wrap=True,
    )
    for line in dict.fromkeys(f"causes from {_source(r['causes_from'])}" for r in report["results"]):
        console.print(escape(line), soft_wrap=True)
    groups: dict[str, list[Row]] = {}
    for result in report["results"]:
        groups.setdefault(result["workload"], []).append(result)
    for name, group in groups.items():
        console.print()
        settings = " ".join(f"{key}={value:,}" for key, value in group[0]["params"].items())
        console.print(escape(f"{name} ({settings})"), style="bold", soft_wrap=True)
        console.print(_table(group))
        for result in group:
            first, *rest = result["verdict"].splitlines()
            console.print(escape(f"{label(result)}: {first}"), soft_wrap=True)
            for line in rest:
                console.print(escape(f"  {line}"), soft_wrap=True)
        table_more.processes(console, group)
        table_more.settling(console, group)


def _named(counter: Row) -> str:
    name, unit = str(counter["name"]), str(counter["unit"])
    return unit if name in unit.split() else f"{name} in {unit}"


def _subtracted(results: Sequence[Row]) -> str:
    return ", which is taken off every value" if any(r["overhead_subtracted"] for r in results) else ""


def _source(causes: Row) -> str:
    counted = causes["from_counters"]
    partly = f"; of {counted:,} trials from the counters" if counted and causes["source"] == TRACING else ""
    return f"{causes['source']} ({causes['note']}{partly})"


def cause_rows(group: Sequence[Row]) -> list[tuple[str, list[int]]]:
    """The commonest causes of a workload's results, and how many trials of each result had them; then the others."""
    counts = [{row["cause"]: row["trials"] for row in result["causes"]} for result in group]
    totals: dict[str, int] = {}
    for each in counts:
        for cause, trials in each.items():
            totals[cause] = totals.get(cause, 0) + trials
    names = sorted(totals, key=lambda name: (-totals[name], name))
    shown = [(name, [each.get(name, 0) for each in counts]) for name in names[:MOST_CAUSES]]
    if rest := names[MOST_CAUSES:]:
        shown.append((f"and {len(rest):,} more", [sum(each.get(name, 0) for name in rest) for each in counts]))
    return shown


def _table(group: Sequence[Row]) -> Table:
    table = Table()
    table.add_column(escape(group[0]["counter"]["unit"]))
    for result in group:
        table.add_column(escape(label(result)), justify="right")

    def row(what: str, cells: Sequence[str]) -> None:
        table.add_row(what, *cells)

    row("trials", [f"{len(r['trials']):,}" for r in group])
    row("warm-up", [f"{r['warmup']:,}{'' if r['settled'] else ', not settled'}" for r in group])
    row("first trials", [_several(r["first"]) for r in group])
    row("last trials", [_several(r["last"]) for r in group])
    row("mode", [f"{r['mode']:,} ({r['mode_count']:,} {'time' if r['mode_count'] == 1 else 'times'})" for r in group])
    for key, what in (("p90", "90th percentile"), ("p99", "99th percentile"), ("max", "100th percentile")):
        row(what, [_difference(r[key], r["mode"]) for r in group])
    row("floor", ["no value repeats" if r["floor"] is None else f"{r['floor']:,}" for r in group])
    row("on the floor", [_on_floor(r) for r in group])
    row("range", [f"{r['range']:,}" for r in group])
    row("clean trials", [_clean(r) for r in group])
    for name in counted(group):
        row(escape(f"  {name}"), [table_more.count(r["counts"].get(name)) for r in group])
    row("polluted trials", [f"{len(r['polluted']):,}" for r in group])
    if any(r["causes_from"]["source"] == TRACING for r in group):
        for cause, numbers in cause_rows(group):
            row(escape(f"  {cause}"), [f"{number:,}" for number in numbers])
    else:
        for key, what in COUNTED:
            row(what, [f"{r[key]:,}" for r in group])
    if any(r["stolen_ms"] for r in group):
        row("kept by the host", ["unknown" if r["stolen_ms"] is None else f"{r['stolen_ms']:,} ms" for r in group])
    return table


def counted(group: Sequence[Row]) -> list[str]:
    """What was counted beside the value in any of these results."""
    return list(dict.fromkeys(name for result in group for name in result["counts"]))


def _clean(result: Row) -> str:
    clean = result["clean_trials"]
    width = "" if clean["range"] is None else f", range {clean['range']:,}"
    return f"{clean['count']:,} ({100 * clean['share']:.1f} %){width}"


def _several(values: Sequence[int]) -> str:
    return "\n".join(f"{value:,}" for value in values)


def _difference(value: int, mode: int) -> str:
    percent = f" ({100 * value / mode:+,.2f} %)" if mode else ""
    return f"mode {value:+,}{percent}"


def _on_floor(result: Row) -> str:
    near = f", {result['near_floor']:,} within a step" if result["near_floor"] > result["at_floor"] else ""
    return f"{result['at_floor']:,}{near}"


def catalogue(content: Row) -> None:
    """The tables of `cbench list`."""
    console = Console(highlight=False)
    columns = ("workload", "stresses", "expected cost", "parameters (default, --quick)")
    workloads = Table(*columns, title="Workloads", title_justify="left", show_lines=True)
    for workload in content["workloads"]:
        lines = [f"{name}: {p['meaning']} ({p['default']:,}, {p['quick']:,})" for name, p in workload["params"].items()]
        workloads.add_row(workload["name"], workload["stresses"], workload["cost"], "\n".join(lines))
    counters = Table("counter", "unit", "available", "", title="Counters", title_justify="left")
    for counter in content["counters"]:
        how = [text for text in (counter["method"], counter["why"]) if text]
        available = "yes" if counter["available"] else "no"
        counters.add_row(counter["name"], counter["unit"], available, escape("; ".join(how)))
    console.print(workloads)
    console.print(counters)
