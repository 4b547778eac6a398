"""Print the tables of `cbench screen validate`."""

from __future__ import annotations

from rich import box
from rich.markup import escape
from rich.table import Table

from cbench.console import table_console
from cbench.study.instruments.instrument import HostInstrument
from cbench.validate.result import MetricSummary, ValidationResult

CLOCKS = ("raw_s", "monotonic_s", "realtime_s", "boottime_s")
ORDER = ("wall", "perf-elapsed", "user", "sys", "task-clock", "cpu-clock", "cycles", "cycles-u", "samples", "ticks")
"""The order of the metrics in the table. The clocks follow, for the etalon only."""


def validation(result: ValidationResult) -> None:
    """Print the verdict, the resolution of the instruments, then each workload's metrics."""
    console = table_console(160)
    for number, line in enumerate(result.verdict):
        console.print(escape(line), style=None if number else "bold", soft_wrap=True)
    instruments = _table("instrument", "reads", "least step", "basis")
    for each in result.instruments:
        if not each.missing:
            instruments.add_row(each.read, escape(each.what), _step(each), escape(each.why))
    console.print(instruments)
    metrics = _table("workload", "metric", "n", "mean", "median", "sd", "CV", "first", "sd without first")
    for workload in result.workloads:
        name = workload.place
        for metric, row in sorted(workload.metrics.items(), key=_place):
            if metric in CLOCKS and workload.workload != "etalon":
                continue
            without = row.first_run.sd_without
            metrics.add_row(
                *(name, metric, f"{row.n:,}", f"{row.mean:.6g}", f"{row.median:.6g}", _number(row.sd)),
                *("" if row.cv_pct is None else f"{row.cv_pct:.2g} %", f"{row.first:.6g}"),
                f"{_number(without)}{' !' if row.first_run.flagged else ''}",
            )
            name = ""
    console.print(metrics)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if len(columns) > 4 and number > 1 else "left")
    return table


def _place(item: tuple[str, MetricSummary]) -> int:
    known = (*ORDER, *CLOCKS)
    return known.index(item[0]) if item[0] in known else len(known)


def _step(each: HostInstrument) -> str:
    return "1" if each.resolution_s is None else f"{each.resolution_s:g} s"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
